// A list of the versions of these pages, at the top of the sidebar. The folder above that of a
// version has versions.js, which names all of them and their pages. Without it, as after a plain
// `nox -s docs`, nothing is shown. No other host is asked, and it works from a file.
"use strict";
(() => {
  const root = document.documentElement.dataset.content_root || "./";
  const here = new URL(root, location.href);
  const load = document.createElement("script");
  load.src = new URL("../versions.js", here);
  load.onload = () => show(globalThis.penstockVersions || []);
  document.head.append(load);

  function show(versions) {
    const name = decodeURIComponent(here.pathname.split("/").at(-2));
    const page = location.pathname.slice(here.pathname.length) || "index.html";
    const place = document.querySelector(".sidebar-sticky") || document.body;
    if (!versions.some((each) => each.name === name)) return;
    const label = document.createElement("label");
    label.className = "version-switcher";
    label.textContent = "Version ";
    const list = document.createElement("select");
    for (const each of versions) {
      const option = new Option(each.title, each.name, each.name === name, each.name === name);
      list.append(option);
    }
    list.onchange = () => {
      const chosen = versions.find((each) => each.name === list.value);
      const target = chosen.pages.includes(page) ? page : "index.html";
      location.href = new URL(`../${chosen.name}/${target}`, here);
    };
    label.append(list);
    place.prepend(label);
  }
})();
