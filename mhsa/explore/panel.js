// What every panel does in the browser. Access: what ipywidgets leaves out, and keys that JupyterLab would take.
// The line: what is shown and spoken. view.js comes after it, in one module: see view.py.

// The page counts: each widget loads this module anew.
const newId = () => `mhsa-${(window.mhsaIds = (window.mhsaIds ?? 0) + 1)}`;

// Access

// Keys with Ctrl, Meta or Alt, Shift+Enter and Escape are JupyterLab's.
const isForLab = ({ ctrlKey, metaKey, altKey, shiftKey, key }) =>
  ctrlKey || metaKey || altKey || (shiftKey && key === "Enter") || key === "Escape";

// It would take the others too: arrow keys from the controls, and a letter inserts, cuts or merges cells.
function keepFromLab(event) {
  if (!isForLab(event)) event.stopPropagation();
}

// noUiSlider, inside ipywidgets' sliders, would go to the end of the range it had at first.
function goToEnd(event) {
  const slider = event.key === "End" ? event.target.closest(".noUi-target")?.noUiSlider : null;
  if (!slider) return;
  slider.set(slider.options.range.max);
  event.preventDefault();
  event.stopPropagation();
}

// ipywidgets gives a slider's handle no name and of a choice tells its number in the list, gives Play's buttons no
// names, and the radio buttons of a question are no group: an arrow key would leave it.
function nameControls(panel) {
  for (const slider of panel.querySelectorAll(".widget-slider")) {
    const [target, handle, label, readout] = [".noUi-target", ".noUi-handle", ".widget-label", ".widget-readout"].map(
      (part) => slider.querySelector(part));
    const name = label?.textContent ?? "";
    handle?.setAttribute("aria-label", name);
    readout?.setAttribute("role", "textbox");
    readout?.setAttribute("aria-label", name);
    target?.noUiSlider?.off("update.mhsa");
    target?.noUiSlider?.on("update.mhsa", () => handle?.setAttribute("aria-valuetext", readout?.textContent ?? ""));
  }
  panel.querySelectorAll(".widget-play").forEach((play) => ["play or pause", "stop"].forEach(
    (name, i) => play.children[i]?.setAttribute("aria-label", name)));
  for (const box of panel.querySelectorAll(".widget-radio-box")) {
    const name = box.querySelector("input")?.name || newId();
    box.querySelectorAll("input").forEach((radio) => { radio.name = name; });
  }
  for (const question of panel.querySelectorAll(".mhsa-question")) {
    question.setAttribute("role", "group");
    question.setAttribute("aria-label", question.querySelector(".widget-html-content")?.textContent ?? "");
  }
}

// As soon as the view stands in its panel; and again when controls come, which ipywidgets makes in its own time.
function mendAccess(el) {
  let panel = null;
  const isElement = (node) => node.nodeType === Node.ELEMENT_NODE; // a new value is text alone
  const bringsControls = ({ target, addedNodes }) => !el.contains(target) && [...addedNodes].some(isElement);
  const controls = new MutationObserver((changes) => {
    if (changes.some(bringsControls)) nameControls(panel);
  });
  let waiting = requestAnimationFrame(function attach() {
    if (!el.isConnected) return void (waiting = requestAnimationFrame(attach));
    panel = el.closest(".mhsa-panel") ?? el;
    panel.addEventListener("keydown", goToEnd, { capture: true });
    panel.addEventListener("keydown", keepFromLab);
    controls.observe(panel, { childList: true, subtree: true });
    nameControls(panel);
  });
  return () => {
    cancelAnimationFrame(waiting);
    controls.disconnect();
  };
}

// The line

const hasPicture = (model) => model.get("svg") !== undefined;

// Of new words only the first two sentences that are new are spoken. Beside a picture the line tells its parts.
function showWords(model, { line, said }) {
  let before = null;
  function show() {
    const words = model.get("words");
    const sentences = words.split(/(?<=[.?!]) /);
    if (before) said.textContent = sentences.filter((sentence) => !before.includes(sentence)).slice(0, 2).join(" ");
    before = sentences;
    if (!hasPicture(model)) line.textContent = words;
  }
  model.on("change:words", show);
  show();
  return () => model.off("change:words", show);
}
