"""Code that all graphs share, from the state graph and the task to prompt parts and the report."""
