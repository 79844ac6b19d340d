// The switch between light and dark. Everything on the page can be read without it.
(() => {
  "use strict";
  const root = document.documentElement;

  function remembered(value) {
    try {
      if (value === undefined) return localStorage.getItem("karat-theme");
      if (value) localStorage.setItem("karat-theme", value);
      else localStorage.removeItem("karat-theme");
    } catch { /* a page from disk may have no storage */ }
    return null;
  }

  function theme() {
    const button = document.querySelector("button.theme");
    const names = { "": "system", light: "light", dark: "dark" };
    const order = ["", "light", "dark"];
    const show = (value) => {
      if (value) root.dataset.theme = value;
      else delete root.dataset.theme;
      if (!button) return;
      button.hidden = false;
      button.querySelector("span").textContent = names[value];
    };
    const first = remembered();
    show(order.includes(first) ? first : "");
    button?.addEventListener("click", () => {
      const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length];
      remembered(next);
      show(next);
    });
  }

  // A box that is not wider than its place is no stop on the way through the page.
  function stops() {
    for (const box of document.querySelectorAll(".scroll, .md pre, .md table")) {
      if (box.scrollWidth > box.clientWidth || !box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }

  theme();
  stops();
  document.addEventListener("toggle", stops, true);
  window.addEventListener("resize", stops);
  window.karatStops = stops;
})();
