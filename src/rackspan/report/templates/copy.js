// Copies the command before a button. Without scripts the buttons stay hidden; a click on a command selects it as a whole.
for (const button of document.querySelectorAll(".copy")) {
  const code = button.previousElementSibling;
  button.addEventListener("click", async () => {
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(code.textContent);
    } else { // A page from a server without TLS.
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "copied";
  });
  button.hidden = false;
}
