// The switch between light and dark, and the charts. Everything on the page can be read without it.
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

  const tip = document.createElement("dl");
  tip.className = "tip";
  tip.hidden = true;

  // Texts are set as text: nothing that an agent said is read as HTML.
  function pointed(_, event, __, value) {
    tip.hidden = value === null || value === undefined || typeof value !== "object";
    if (tip.hidden) return;
    tip.replaceChildren(...Object.entries(value).flatMap(([name, told]) => {
      const [term, words] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      words.textContent = String(told);
      return [term, words];
    }));
    const room = 14;
    const x = Math.min(event.clientX + room, root.clientWidth - tip.offsetWidth - room);
    const below = event.clientY + room + tip.offsetHeight < root.clientHeight;
    tip.style.left = `${Math.max(room, x)}px`;
    tip.style.top = `${below ? event.clientY + room : event.clientY - room - tip.offsetHeight}px`;
  }

  const NARROW = 520;
  const TWO_LINES = {
    labelExpr: "[split(datum.label, ' − ')[0] + ' −', split(datum.label, ' − ')[1]]",
    labelFontSize: 10, labelLineHeight: 10, labelPadding: 4,
  };

  // The title stands above the drawing as text; a legend has one column where there is no room for more.
  function fitted(spec, look, width) {
    const narrow = width < NARROW;
    const config = structuredClone(look);
    if (narrow) {
      config.axis.labelLimit = 128;
      config.legend.labelLimit = 200;
      config.header.labelLimit = width - 20;
    }
    const own = JSON.parse(JSON.stringify(spec), function folded(key, value) {
      if (!narrow || !value || typeof value !== "object") return value;
      if (key === "legend" && "columns" in value) value.columns = 1;
      if (key === "axis" && "tickCount" in value) value.tickCount = 3;
      if (key === "axis" && this.field === "pair") Object.assign(value, TWO_LINES);
      return value;
    });
    delete own.title;
    return { ...own, config };
  }

  // Labels take what they need, and the plot the rest: told by one drawing, put right by a signal.
  function stretched(view, drawing) {
    const svg = drawing.querySelector("svg");
    const name = ["child_width", "width"].find((one) => { try { view.signal(one); return true; } catch { return false; } });
    if (!svg || !name) return Promise.resolve();
    const over = drawing.clientWidth - svg.width.baseVal.value;
    const width = Math.max(96, Math.min(760, view.signal(name) + Math.floor(over)));
    return view.signal(name, width).resize().runAsync();
  }

  const embed = (place, spec, renderer) =>
    window.vegaEmbed(place, spec, { ast: true, actions: false, defaultStyle: false, renderer, tooltip: pointed });

  async function draw(figure, look) {
    const drawing = figure.querySelector(".drawing");
    const spec = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    drawing.hidden = false;
    let narrow = null;
    let view = null;
    let busy = Promise.resolve();
    const fit = async () => {
      if (!drawing.clientWidth) return;
      if (narrow !== drawing.clientWidth < NARROW) {
        narrow = drawing.clientWidth < NARROW;
        view?.finalize();
        view = (await embed(drawing, fitted(spec, look.page, drawing.clientWidth), "svg")).view;
        drawing.querySelector("svg").setAttribute("aria-hidden", "true"); // the box around it has the name
      }
      await stretched(view, drawing);
      await stretched(view, drawing);
    };
    await fit();
    let last = drawing.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(drawing.clientWidth - last) < 2) return;
      last = drawing.clientWidth;
      busy = busy.then(fit);
    }).observe(drawing);
    figure.querySelector("details.numbers").open = false;
    figure.append(savers(figure, spec, look));
    figure.classList.add("drawn");
  }

  // A file gets what a page has elsewhere: its title, and colours of its own.
  function savers(figure, spec, look) {
    const row = document.createElement("p");
    row.className = "savers";
    row.append("Save as ");
    for (const [at, form] of ["PNG", "SVG"].entries()) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = form;
      button.addEventListener("click", () => save(figure, { ...spec, config: look.file }, form.toLowerCase()));
      if (at) row.append(" or ");
      row.append(button);
    }
    return row;
  }

  async function save(figure, spec, form) {
    const place = document.createElement("div");
    const { view } = await embed(place, spec, form === "png" ? "canvas" : "svg");
    const link = document.createElement("a");
    link.href = await view.toImageURL(form, 2);
    link.download = `${figure.id}.${form}`;
    link.click();
    view.finalize();
  }

  async function charts() {
    const look = document.getElementById("chart-look");
    const figures = [...document.querySelectorAll("figure.chart")];
    if (look && window.vegaEmbed) {
      document.body.append(tip);
      const read = JSON.parse(look.textContent);
      for (const figure of figures) {
        try {
          await draw(figure, read);
        } catch (error) {
          figure.querySelector(".drawing").hidden = true;
          console.error(figure.id, error);
        }
      }
    }
    stops();
    root.dataset.charts = "drawn";
  }

  theme();
  document.addEventListener("toggle", stops, true);
  window.addEventListener("resize", stops);
  window.karatCharts = charts;
  charts();
})();
