// the theme gives the toggles of its table of contents no name
addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)"))
    toggle.setAttribute("aria-label", `Pages below ${toggle.parentElement.parentElement.querySelector("a").textContent}`);
});
