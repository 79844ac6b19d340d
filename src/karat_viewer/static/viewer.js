// Keys, new results of a running run, and reviews. Every page can be read, filtered and followed without this script.
(() => {
  "use strict";
  const body = document.body;

  // ----- keys -----
  const box = document.getElementById("single-keys");

  function wanted(value) {
    try {
      if (value !== undefined) localStorage.setItem("karat-keys", value ? "on" : "off");
      return localStorage.getItem("karat-keys") !== "off";
    } catch { return value ?? true; }
  }

  if (box) {
    box.checked = wanted();
    box.addEventListener("change", () => wanted(box.checked));
  }

  function step(by) {
    const items = [...document.querySelectorAll("main [data-item]")].filter((one) => one.offsetParent !== null);
    if (!items.length) {
      document.querySelector(by > 0 ? "main a[rel=next]" : "main a[rel=prev]")?.click();
      return;
    }
    const at = items.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by;
    items[Math.max(0, Math.min(items.length - 1, next))].focus();
  }

  const keys = {
    j: () => step(1),
    k: () => step(-1),
    u: () => document.querySelector("a[rel=up]")?.click(),
    "/": () => { const field = document.querySelector("[data-search]"); field?.focus(); field?.select(); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !box?.checked) return;
    const at = event.target;
    if (at.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) {
      if (event.key === "Escape") at.blur();
      return;
    }
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

  // ----- two runs to compare -----
  for (const form of document.querySelectorAll("form[data-two]")) {
    const boxes = [...form.querySelectorAll("input[name=run]")];
    const button = form.querySelector("button");
    const told = form.querySelector("[data-told]");
    const count = () => {
      const chosen = boxes.filter((one) => one.checked).length;
      for (const one of boxes) one.disabled = one.dataset.broken === "yes" || (chosen >= 2 && !one.checked);
      if (!button) return;
      button.disabled = chosen !== 2;
      told.textContent = chosen === 2 ? "" : `Select two runs; ${chosen} selected.`;
    };
    for (const one of boxes) if (one.disabled) one.dataset.broken = "yes";
    form.addEventListener("change", count);
    count();
  }

  // ----- news -----
  let stamp = body.dataset.stamp;
  let quiet = 2000;

  async function renew() {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const open = new Set([...document.querySelectorAll("main details[open] > summary")].map((one) => one.textContent));
    document.getElementById("main").replaceWith(document.adoptNode(page.getElementById("main")));
    for (const one of document.querySelectorAll("main details > summary")) {
      if (open.has(one.textContent)) one.parentElement.open = true;
    }
    stamp = page.body.dataset.stamp;
    body.dataset.renew = page.body.dataset.renew ?? "";
    reviews();
    window.karatStops?.();
  }

  function tell() {
    const place = document.querySelector(".renewed");
    if (place.firstChild) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Show them";
    button.addEventListener("click", () => { place.replaceChildren(); renew(); });
    place.append("There are new results. ", button);
  }

  async function ask() {
    if (document.visibilityState === "visible") {
      try {
        const answer = await fetch(body.dataset.state, {
          cache: "no-store", headers: stamp ? { "If-None-Match": `"${stamp}"` } : {},
        });
        if (answer.status === 200) {
          const now = await answer.json();
          const waiting = !stamp && now.done < now.total;
          const begun = performance.now();
          if (body.dataset.renew === "whole") await renew();
          else if (now.stamp !== stamp) tell();
          // A large page must not take time from the run on the same machine.
          const took = performance.now() - begun;
          quiet = Math.max(10 * took, now.going || waiting || !stamp ? 2000 : 5000);
        } else if (answer.status === 304) quiet = Math.min(10000, quiet + 500);
        else if (answer.status === 403) return;
      } catch { quiet = 10000; }
    }
    setTimeout(ask, quiet);
  }

  if (body.dataset.state) setTimeout(ask, quiet);

  // ----- reviews -----
  function read(form) {
    const data = new FormData(form);
    const review = { trial: form.dataset.trial, who: String(data.get("who")), scores: {}, claims: {}, note: String(data.get("note")) };
    if (form.dataset.turn) Object.assign(review, { turn: Number(form.dataset.turn), readings: {} });
    for (const [name, value] of data) {
      if (name === "verdict" || name === "diagnosis") review[name] = value;
      if (name.startsWith("read:") && value !== "") {
        const place = name.slice(5);
        review.readings[place] = value === "typed" ? { value: String(data.get(`typed:${place}`)).trim() } : JSON.parse(value);
      }
      if (name.startsWith("score:") && value !== "") review.scores[name.slice(6)] = Number(String(value).replace(",", "."));
      if (name.startsWith("verdict:") && value !== "") review.claims[name.slice(8)] = value;
    }
    if (review.verdict !== "wrong") delete review.diagnosis;  // chosen before the verdict changed
    return review;
  }

  async function save(form) {
    const told = form.querySelector("[data-told]");
    told.textContent = "Saving …";
    try {
      const answer = await fetch(form.dataset.review, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          "X-Karat-CSRF": document.querySelector("meta[name=csrf]").content,
        },
        body: JSON.stringify(read(form)),
      });
      const said = (answer.headers.get("content-type") ?? "").startsWith("application/json") ? await answer.json() : {};
      const saved = answer.status === 201;  // a page that waits for the index is a response too
      if (saved) stamp = said.stamp;
      told.textContent = saved ? "Saved." : `Not saved: ${said.problem ?? (answer.ok ? "the run is being read; try again" : "the server refused it")}`;
    } catch { told.textContent = "Not saved: the viewer does not answer. Is it still running?"; }
  }

  function reviews() {
    for (const form of document.querySelectorAll("form[data-review]")) {
      if (form.dataset.ready) continue;
      form.dataset.ready = "yes";
      form.addEventListener("submit", (event) => { event.preventDefault(); save(form); });
      form.addEventListener("input", (event) => {  // typing an answer selects it
        const place = /^typed:(\d+)$/.exec(event.target.name ?? "")?.[1];
        if (place) form.elements.namedItem(`read:${place}`).value = "typed";
      });
    }
  }

  reviews();
})();
