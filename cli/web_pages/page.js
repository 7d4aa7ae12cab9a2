// Keys go to the console from the start, without a click into the page.
new MutationObserver((_, observer) => {
  const keys = document.querySelector(".xterm-helper-textarea");
  if (keys && document.body.classList.contains("-first-byte")) {
    observer.disconnect();
    keys.focus();
  }
}).observe(document.documentElement, { attributes: true, attributeFilter: ["class"], childList: true, subtree: true });
