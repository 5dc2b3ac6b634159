// Shows the topics whose names contain what is typed. Without scripts the page is complete, and the fields stay hidden.
for (const field of document.querySelectorAll(".find")) {
  const input = field.querySelector("input"), section = field.closest("section");
  const rows = [...section.querySelectorAll("[data-topic]")], parts = [...section.querySelectorAll("details.healthy")];
  const opened = parts.map(part => part.open);
  input.addEventListener("input", () => {
    const text = input.value.trim().toLowerCase();
    let found = 0;
    for (const row of rows) {
      row.hidden = !row.dataset.topic.toLowerCase().includes(text);
      found += row.hidden ? 0 : 1;
    }
    parts.forEach((part, at) => { part.open = text ? true : opened[at]; });
    field.querySelector("output").textContent = text ? found + " of " + rows.length + " topics" : "";
  });
  field.hidden = false;
}
