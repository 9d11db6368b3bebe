// The picture of a panel that has one: what can be pointed at in it, and where the keys lead. It comes after panel.js.

const HINT = "Point at a part of the picture, or press Tab to reach it and move with the arrow keys.";
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const SVG = "http://www.w3.org/2000/svg";
const LEAST_TEXT = 9; // pixels

// An image of the picture, twice as fine as on the screen.
async function paint(svg) {
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  URL.revokeObjectURL(image.src);
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done));
}

async function download(name, svg) {
  const picture = new Blob([svg], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(name.endsWith(".png") ? await paint(picture) : picture);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function showPicture(model, { name, words, picture, line, said }) {
  name.id = newId();
  let current = null; // the part that Tab reaches
  let lit = null; // the part whose label is shown

  const all = () => [...picture.querySelectorAll("[data-key]")];
  const describe = () => picture.querySelector("desc").textContent;
  const keysOf = (part) => part.dataset.key.split(" ");
  const sharing = (part) => all().filter((other) => keysOf(other).some((key) => keysOf(part).includes(key)));
  const focused = () => picture.contains(document.activeElement);

  function light(part) {
    lit = part;
    picture.querySelector(".mhsa-rings")?.remove();
    line.textContent = part ? part.getAttribute("aria-label") : all().length ? HINT : describe();
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
        const how = other === part ? "mhsa-here" : place.d * box.height < 20 ? "mhsa-thin" : "";
        ring.setAttribute("class", `${kind} ${how}`);
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

  // A function that finds this part again after a redraw: the same one of those that share its key.
  function finder(part) {
    const number = part ? sharing(part).indexOf(part) : -1;
    return () => {
      const same = part ? sharing(part) : [];
      return same[Math.min(number, same.length - 1)] ?? null;
    };
  }

  function draw() {
    const hadFocus = focused();
    const [findCurrent, findLit] = [finder(current), finder(lit)];
    picture.innerHTML = model.get("svg");
    const svg = picture.querySelector("svg");
    nameByTitle(svg);
    const sizes = [...svg.querySelectorAll("text")].map((text) => Number(text.getAttribute("font-size")));
    const scale = LEAST_TEXT / Math.min(...sizes, 16);
    svg.style.minWidth = `${Math.ceil(scale * svg.width.baseVal.value)}px`; // narrower: scroll, do not shrink on
    for (const part of all()) part.setAttribute("tabindex", "-1");
    makeCurrent(findCurrent() ?? all()[0] ?? null);
    if (hadFocus) current?.focus({ preventScroll: true });
    light(findLit() ?? (hadFocus ? current : null));
  }

  // The words of the picture stand before it, to be read; of mere words, the line shows them. Its name is the title
  // alone.
  function nameByTitle(svg) {
    const title = svg.querySelector("title");
    name.textContent = title.textContent;
    words.textContent = all().length ? describe() : "";
    svg.setAttribute("role", "group");
    svg.setAttribute("aria-labelledby", name.id);
    title.remove(); // the browser would show it as a tooltip
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

  async function save({ save: file, svg }) {
    await download(file, svg);
    said.textContent = line.textContent = `${file} is among the browser's downloads.`;
  }

  const keyedOf = (event) => event.target.closest?.("[data-key]");

  function press(part) {
    model.send({ press: part.dataset.key });
  }

  // Not pointerover: that also comes when a redraw moves the picture under a pointer at rest.
  picture.addEventListener("pointermove", (event) => {
    const part = keyedOf(event) ?? (focused() ? current : null);
    if (part !== lit) light(part);
  });
  picture.addEventListener("pointerleave", () => light(focused() ? current : null));
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
    part.focus({ preventScroll: true });
    press(part);
  });
  picture.addEventListener("keydown", (event) => {
    const part = keyedOf(event);
    if (!part || isForLab(event)) return;
    if (event.key in MOVES) neighbour(part, MOVES[event.key]).focus();
    else if (event.key === "Home") all()[0].focus();
    else if (event.key === "End") all().at(-1).focus();
    else if (event.key === "Enter" || event.key === " ") press(part);
    else return;
    event.preventDefault();
  });

  model.on("change:svg", draw);
  model.on("msg:custom", save);
  draw();
  return () => {
    model.off("change:svg", draw);
    model.off("msg:custom", save);
  };
}

function render({ model, el }) {
  el.classList.add("mhsa-view");
  const parts = Object.fromEntries(["name", "words", "picture", "line", "said"].map((name) => {
    const part = el.appendChild(document.createElement("div"));
    part.className = `mhsa-${name}`;
    return [name, part];
  }));
  parts.said.setAttribute("role", "status");
  const ends = [mendAccess(el), showWords(model, parts), hasPicture(model) ? showPicture(model, parts) : () => {}];
  return () => ends.forEach((end) => end());
}

export default { render };
