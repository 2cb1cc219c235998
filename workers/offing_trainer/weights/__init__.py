"""How much each token counts, a file a plug-in; every averaging rule is one."""
