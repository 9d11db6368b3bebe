const HINT = "Point at a part of the picture, or press Tab to reach it and move with the arrow keys.";
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SVG = "http://www.w3.org/2000/svg";

function render({ model, el }) {
  el.classList.add("mhsa-view");
  const picture = el.appendChild(document.createElement("div"));
  const line = el.appendChild(document.createElement("div"));
  picture.className = "mhsa-picture";
  line.className = "mhsa-line";
  line.setAttribute("role", "status");
  let current = null; // the element that Tab reaches

  const all = () => [...picture.querySelectorAll("[data-key]")];
  const keysOf = (part) => part.dataset.key.split(" ");
  const sharing = (part) => all().filter((other) => keysOf(other).some((key) => keysOf(part).includes(key)));

  function light(part) {
    picture.querySelector(".mhsa-rings")?.remove();
    line.textContent = part ? part.getAttribute("aria-label") : HINT;
    if (!part) return;
    const svg = picture.querySelector("svg");
    const rings = document.createElementNS(SVG, "g");
    rings.setAttribute("class", "mhsa-rings");
    const toSvg = svg.getScreenCTM().inverse();
    for (const other of sharing(part)) {
      const box = other.getBBox();
      const place = toSvg.multiply(other.getScreenCTM());
      for (const kind of ["mhsa-ring-outer", "mhsa-ring-inner"]) {
        const ring = rings.appendChild(document.createElementNS(SVG, "rect"));
        ring.setAttribute("class", other === part ? `${kind} mhsa-here` : kind);
        ring.setAttribute("x", place.a * box.x + place.e);
        ring.setAttribute("y", place.d * box.y + place.f);
        ring.setAttribute("width", place.a * box.width);
        ring.setAttribute("height", place.d * box.height);
      }
    }
    svg.append(rings);
  }

  function makeCurrent(part) {
    current?.setAttribute("tabindex", "-1");
    current = part;
    current?.setAttribute("tabindex", "0");
  }

  function draw() {
    const focused = picture.contains(document.activeElement);
    const twins = current ? sharing(current) : [];
    const number = twins.indexOf(current); // several parts can share a key: keep to the same one
    picture.innerHTML = model.get("svg");
    const svg = picture.querySelector("svg");
    svg.querySelector("title")?.remove(); // the browser would show it as a tooltip; aria-label says the same
    svg.setAttribute("role", "group");
    const same = current ? sharing(current) : [];
    makeCurrent(same[Math.min(number, same.length - 1)] ?? all()[0] ?? null);
    if (focused && current) current.focus({ preventScroll: true });
    else light(null);
  }

  function neighbour(part, [dx, dy]) {
    const middle = (other) => {
      const box = other.getBoundingClientRect();
      return [box.x + box.width / 2, box.y + box.height / 2];
    };
    const [x, y] = middle(part);
    let best = part;
    let least = Infinity;
    for (const other of all()) {
      const [u, v] = middle(other);
      const along = (u - x) * dx + (v - y) * dy;
      const aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
      if (along > 1 && along + 4 * aside < least) [best, least] = [other, along + 4 * aside];
    }
    return best;
  }

  const keyedOf = (event) => event.target.closest?.("[data-key]");

  function press(part) {
    model.send({ press: part.dataset.key });
  }

  picture.addEventListener("pointerover", (event) => light(keyedOf(event) ?? (picture.contains(document.activeElement) ? current : null)));
  picture.addEventListener("pointerleave", () => light(picture.contains(document.activeElement) ? current : null));
  picture.addEventListener("focusout", () => light(null));
  picture.addEventListener("focusin", (event) => {
    const part = keyedOf(event);
    if (!part) return;
    makeCurrent(part);
    light(part);
    if (model.get("selected") === part.dataset.key) return;
    model.set("selected", part.dataset.key);
    model.save_changes();
  });
  picture.addEventListener("click", (event) => {
    const part = keyedOf(event);
    if (!part) return;
    part.setAttribute("tabindex", "0");
    part.focus({ preventScroll: true });
    press(part);
  });
  picture.addEventListener("keydown", (event) => {
    const part = keyedOf(event);
    if (!part || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in MOVES) step(neighbour(part, MOVES[event.key]));
    else if (event.key === "Home") step(all()[0]);
    else if (event.key === "End") step(all().at(-1));
    else if (event.key === "Enter" || event.key === " ") press(part);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function step(part) {
    part.setAttribute("tabindex", "0");
    part.focus();
  }

  model.on("change:svg", draw);
  draw();
  // JupyterLab's own shortcuts would take the arrow keys from the picture and its controls.
  const attached = requestAnimationFrame(() => el.closest(".mhsa-explorer")?.setAttribute("data-lm-suppress-shortcuts", "true"));
  return () => {
    cancelAnimationFrame(attached);
    model.off("change:svg", draw);
  };
}

export default { render };
