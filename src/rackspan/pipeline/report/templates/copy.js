// Copies the command before a button. Without scripts the buttons stay hidden; a click on a command selects it as a whole.
for (const button of navigator.clipboard ? document.querySelectorAll(".copy") : []) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "copied";
  });
  button.hidden = false;
}
