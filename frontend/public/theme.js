// Apply the stored theme before the first paint, so that the page does not flash. The content security policy forbids
// inline scripts.
(() => {
  try {
    const theme = localStorage.getItem("offing.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Some private windows block storage. The system theme applies then.
  }
})();
