// What pages gain with a script: lists that follow the filter, and the progress of a running measurement. Without it
// every page works by links and forms.
"use strict";

/** Loads a page of this site and returns it as a document. */
async function loadPage(url, signal) {
  const response = await fetch(url, { signal, headers: { Accept: "text/html" } });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

/** Returns the address that a form leads to, without its empty fields. */
function formAddress(form) {
  const fields = new URLSearchParams(new FormData(form));
  for (const [name, value] of [...fields]) if (value === "") fields.delete(name);
  const query = fields.toString();
  return location.pathname + (query ? "?" + query : "");
}

/** Shows the results of a filter while the user types or chooses. */
function followFilter(form) {
  let pending = null, timer = 0;
  const show = async () => {
    pending?.abort();
    pending = new AbortController();
    const url = formAddress(form);
    try {
      const page = await loadPage(url, pending.signal);
      const found = page.getElementById("results"), here = document.getElementById("results");
      if (!found || !here) return;
      here.replaceWith(found);
      history.replaceState(null, "", url);
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  };
  const later = (delay) => { clearTimeout(timer); timer = setTimeout(show, delay); };
  form.addEventListener("input", (event) => later(event.target.type === "search" ? 180 : 0));
  form.addEventListener("submit", (event) => { event.preventDefault(); later(0); });
}

/** Follows a running measurement, and draws its report anew when something was measured. */
function followRun(bar) {
  const events = new EventSource(bar.dataset.live);
  const text = bar.querySelector(".live-text"), progress = bar.querySelector("progress");
  const details = bar.querySelector(".live-details");
  let drawn = -1, drawing = false;
  const redraw = async () => {
    if (drawing) return;
    drawing = true;
    const page = await loadPage(location.href).catch(() => null);
    const found = page?.querySelector("main"), here = document.querySelector("main");
    // A page whose bar is inside keeps the bar: its stream goes on.
    if (found && here?.contains(bar)) {
      for (const name of ["pre.output", ".empty", ".toolbar"]) {
        const now = here.querySelector(name), then = found.querySelector(name);
        if (now && then) now.replaceWith(then);
      }
      if (!here.querySelector("pre.output") && found.querySelector("pre.output")) here.querySelector(".empty")?.replaceWith(found.querySelector("pre.output"));
      here.querySelector("pre.output")?.scrollTo(0, 1e9);
    } else if (found && here) {
      const open = [...here.querySelectorAll("details")].map((one) => one.open);
      here.replaceWith(found);
      markScrollers(found);
      found.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? one.open; });
    }
    setTimeout(() => { drawing = false; }, 2000);
  };
  let state = null, received = 0;
  // Nothing is sent while nothing is measured: a measurement that died shows by its silence.
  const showText = () => {
    if (!state) return;
    const idle = state.idle_s === null ? 0 : state.idle_s + (Date.now() - received) / 1000;
    text.textContent = state.text + (idle > 600 ? ` (nothing new for ${Math.round(idle / 60)} min)` : "");
  };
  const clock = setInterval(showText, 30000);
  const show = (event) => {
    state = JSON.parse(event.data);
    received = Date.now();
    showText();
    progress.hidden = state.planned === 0;
    progress.max = Math.max(state.planned, 1);
    progress.value = state.done;
    if (details) details.textContent = state.details.join(" · ");
    if (drawn !== -1 && drawn !== state.done) redraw();
    drawn = state.done;
  };
  events.addEventListener("progress", show);
  events.addEventListener("end", () => { events.close(); location.reload(); });
  events.addEventListener("gone", () => { events.close(); clearInterval(clock); text.textContent = "The record is gone."; });
}

/** Shows the answer for the disks as soon as one is dragged, ticked or added. */
function followPlanner(form) {
  let pending = null;
  const show = async () => {
    pending?.abort();
    pending = new AbortController();
    const url = formAddress(form);
    try {
      const page = await loadPage(url, pending.signal);
      const focused = document.activeElement;
      const again = focused?.name === "use" ? `[name=use][value="${focused.value}"]` : `[name="${focused?.name}"]`;
      for (const part of ["#planner", "body > header", "main"]) {
        const found = page.querySelector(part), here = document.querySelector(part);
        if (!found || !here) return location.assign(url);
        here.replaceWith(found);
      }
      history.replaceState(null, "", url);
      const next = document.querySelector("form[data-planner]");
      followPlanner(next);
      markScrollers(document);
      if (focused?.name) next.querySelector(again)?.focus();
    } catch (error) {
      if (error.name !== "AbortError") location.assign(url);
    }
  };
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
  for (const disk of form.querySelectorAll(".disk")) dragDisk(form, disk, show);
}

/** Moves a disk with the pointer: dropped in the other zone, its box changes. */
function dragDisk(form, disk, show) {
  let start = null, moved = false;
  const zoneAt = (event) => {
    disk.style.pointerEvents = "none";
    const zone = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-zone]");
    disk.style.pointerEvents = "";
    form.querySelectorAll(".zone").forEach((one) => one.classList.toggle("over", one === zone));
    return zone;
  };
  disk.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = [event.clientX, event.clientY];
    moved = false;
    // A quick pointer leaves the disk before it has moved it.
    disk.setPointerCapture(event.pointerId);
  });
  disk.addEventListener("pointermove", (event) => {
    if (!start) return;
    const [dx, dy] = [event.clientX - start[0], event.clientY - start[1]];
    if (!moved && Math.hypot(dx, dy) < 6) return;
    moved = true;
    disk.classList.add("dragged");
    disk.style.transform = `translate(${dx}px, ${dy}px)`;
    zoneAt(event);
  });
  const end = (event) => {
    if (!start) return;
    start = null;
    disk.classList.remove("dragged");
    disk.style.transform = "";
    if (!moved || event.type === "pointercancel") return;
    const zone = zoneAt(event), box = disk.querySelector("input");
    if (!zone || (zone.dataset.zone === "in") === box.checked) return;
    box.checked = !box.checked;
    show();
  };
  disk.addEventListener("pointerup", end);
  disk.addEventListener("pointercancel", end);
  // A drag is no click.
  disk.addEventListener("click", (event) => { if (moved) event.preventDefault(); moved = false; });
}

/** Zooms a history to the time that is marked with the pointer. */
function zoomChart(box) {
  const [from, to, left, right] = box.dataset.zoom.split(" ").map(Number);
  const svg = box.querySelector("svg");
  let start = null, span = null;
  const share = (event) => {
    const area = svg.getBoundingClientRect();
    const at = ((event.clientX - area.left) / area.width - left) / (right - left);
    return Math.min(1, Math.max(0, at));
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    start = share(event);
    svg.setPointerCapture(event.pointerId);
    span = box.appendChild(document.createElement("div"));
    span.className = "span";
  });
  svg.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const area = svg.getBoundingClientRect(), outer = box.getBoundingClientRect();
    const at = (part) => area.left - outer.left + (left + part * (right - left)) * area.width;
    const ends = [start, share(event)].sort((a, b) => a - b);
    span.style.left = at(ends[0]) + "px";
    span.style.width = at(ends[1]) - at(ends[0]) + "px";
    span.style.top = area.top - outer.top + "px";
    span.style.height = area.height + "px";
  });
  svg.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const ends = [start, share(event)].sort((a, b) => a - b);
    start = null;
    span.remove();
    if (ends[1] - ends[0] < 0.01) return;
    const address = new URL(location.href);
    const time = (part) => new Date((from + part * (to - from)) * 1000).toISOString().slice(0, 19) + "Z";
    address.searchParams.set("from", time(ends[0]));
    address.searchParams.set("to", time(ends[1]));
    location.assign(address);
  });
}

document.querySelectorAll("form[data-planner]").forEach(followPlanner);
document.querySelectorAll("[data-zoom]").forEach(zoomChart);
document.querySelectorAll("form[data-instant]").forEach(followFilter);
document.querySelectorAll("[data-live]").forEach(followRun);
// `/` leads to the search, as in other tools.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  document.querySelector("input[type=search]")?.focus();
});

/** Lets the keyboard reach boxes that scroll. */
function markScrollers(root) {
  for (const box of root.querySelectorAll(".wide, .picture, figure, pre")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
markScrollers(document);
addEventListener("resize", () => markScrollers(document));
// On a phone the list of pages scrolls sideways.
const here = document.querySelector(".site nav [aria-current]");
if (here) here.closest("ul").scrollLeft = here.offsetLeft - 40;
