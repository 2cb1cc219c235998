// Before the first paint, so that a chosen theme does not flash. The policy allows no inline script.
(() => {
  try {
    const theme = localStorage.getItem("offing.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is refused in some private windows; the system's theme stands.
  }
})();
