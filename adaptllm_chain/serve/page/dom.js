/**
 * Make an element. What is appended as a string becomes text, never HTML.
 *
 * @param {string} tag
 * @param {Object<string, string|number|boolean>} [attributes] `true` sets an empty one, `false` leaves it out.
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}
