/** Small pieces of a page. */

/** Make an element, with a class, in a parent. */
export function element(tag, name = "", parent = null) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}

/** Change an element's text only where it differs: an unchanged page costs no layout. */
export function write(target, words) {
  if (target.textContent !== words) target.textContent = words;
}

/** A button that switches one of the model's traits. */
export function toggle(model, trait, label, parent) {
  const button = element("button", "", parent);
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => {
    model.set(trait, !model.get(trait));
    model.save_changes();
  });
  return () => button.setAttribute("aria-pressed", String(Boolean(model.get(trait))));
}
