// A deck: one slide at a time, its fragments and outputs one by one. Without this file everything is shown at once.
const slides = [...document.querySelectorAll("section section")];
const steps = slides.map(slide => [...slide.querySelectorAll(".fragment, .jp-Cell-outputWrapper")]);
const sections = slides.map(slide => slide.parentElement);
let at = 0, shown = 0, size = 100;

function show(slide, step) {
    at = Math.max(0, Math.min(slide, slides.length - 1));
    shown = Math.max(0, Math.min(step, steps[at].length));
    slides.forEach((element, i) => element.classList.toggle("now", i === at));
    steps[at].forEach((element, i) => element.classList.toggle("later", i >= shown));
    document.getElementById("place").textContent = `${at + 1} / ${slides.length}`;
    history.replaceState(null, "", `#${at + 1}.${shown}`);
    window.scrollTo(0, 0);
    if (shown) steps[at][shown - 1].scrollIntoView({block: tooTall() ? "start" : "nearest"});
}

const last = () => shown ? steps[at][shown - 1] : slides[at];       // what was shown last
const tooTall = () => last().offsetHeight > innerHeight;
const goesOnBelow = () => last().getBoundingClientRect().bottom > innerHeight + 1;

function resize(percent) {
    size = Math.max(60, Math.min(percent, 200));
    document.documentElement.style.setProperty("--size", size / 100);
}

function on() {
    if (goesOnBelow()) window.scrollBy(0, 0.8 * innerHeight);
    else if (shown < steps[at].length) show(at, shown + 1);
    else if (at + 1 < slides.length) show(at + 1, 0);
}

const back = () => shown ? show(at, shown - 1) : at && show(at - 1, Infinity);
const nextSection = () => show(sections.findLastIndex(section => section === sections[at]) + 1, 0);
const lastSection = () => show(sections.indexOf(sections[Math.max(0, sections.indexOf(sections[at]) - 1)]), 0);
const keys = {
    ArrowRight: on, " ": on, PageDown: on, ArrowLeft: back, PageUp: back, Backspace: back,
    ArrowDown: nextSection, ArrowUp: lastSection, Home: () => show(0, 0), End: () => show(slides.length - 1, Infinity),
    "+": () => resize(size + 10), "=": () => resize(size + 10), "-": () => resize(size - 10), "0": () => resize(100),
};

document.addEventListener("keydown", event => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && event.target.closest("summary, button, a")) return;
    event.preventDefault();
    keys[event.key]();
});
document.getElementById("on").addEventListener("click", on);
document.getElementById("back").addEventListener("click", back);
document.body.classList.add("deck");
const [, slide, step] = location.hash.match(/^#(\d+)\.(\d+)$/) ?? [0, 1, 0];
show(slide - 1, +step);
