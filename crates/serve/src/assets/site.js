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
    if (found && here) {
      const open = [...here.querySelectorAll("details")].map((one) => one.open);
      here.replaceWith(found);
      markScrollers(found);
      found.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? one.open; });
    }
    setTimeout(() => { drawing = false; }, 2000);
  };
  const show = (event) => {
    const state = JSON.parse(event.data);
    text.textContent = state.text + (state.idle_s > 600 ? ` (nothing new for ${Math.round(state.idle_s / 60)} min)` : "");
    progress.hidden = state.planned === 0;
    progress.max = Math.max(state.planned, 1);
    progress.value = state.done;
    if (details) details.textContent = state.details.join(" · ");
    if (drawn !== -1 && drawn !== state.done) redraw();
    drawn = state.done;
  };
  events.addEventListener("progress", show);
  events.addEventListener("end", () => { events.close(); location.reload(); });
  events.addEventListener("gone", () => { events.close(); text.textContent = "The record is gone."; });
}

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
