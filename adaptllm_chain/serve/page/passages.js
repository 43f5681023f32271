/** What was read, with the answer's words marked. */

import { element } from "./dom.js";
import { figure } from "./wording.js";

/**
 * Cut a text at its marks.
 *
 * @param {string} text
 * @param {Array<[number, number]>} marks Sorted, disjoint ranges in code points, as Python counts; JavaScript counts
 *   UTF-16 units.
 * @returns {Array<{text: string, marked: boolean}>} Joined, they are the text.
 */
export function cutAtMarks(text, marks) {
  const points = Array.from(text);
  const parts = [];
  let from = 0;
  for (const [start, end] of marks) {
    parts.push({ text: points.slice(from, start).join(""), marked: false });
    parts.push({ text: points.slice(start, end).join(""), marked: true });
    from = end;
  }
  parts.push({ text: points.slice(from).join(""), marked: false });
  return parts.filter((part) => part.text !== "");
}

/**
 * Count the code points that repeat a passage's title, as the heading at the head of a Markdown file does.
 *
 * @param {string} text
 * @param {string} title
 * @returns {number} 0 where there is more or less than that.
 */
export function headingLength(text, title) {
  const [heading] = text.match(/^#{1,6} .*\n\s*/) ?? [""];
  return heading.replace(/^#+/, "").trim() === title ? Array.from(heading).length : 0;
}

/**
 * Show passages, best first. Open are the first one, and each in which the answer's words stand.
 *
 * @param {Array<{title: string, text: string, score: number|null, marks?: Array<[number, number]>}>} passages
 * @returns {HTMLElement}
 */
export function passageList(passages) {
  const items = passages.map((passage, index) => {
    const marks = passage.marks ?? [];
    const score = passage.score === null ? "" : `score ${figure(passage.score)}`;
    const text = cutAtMarks(...withoutHeading(passage)).map((part) =>
      part.marked ? element("mark", {}, part.text) : part.text,
    );
    const fold = element(
      "details",
      { open: index === 0 || marks.length > 0 },
      element(
        "summary",
        {},
        element("span", { class: "title" }, passage.title || "Untitled"),
        element("span", { class: "quiet" }, score),
      ),
      element("p", {}, ...text),
    );
    return element("li", {}, fold);
  });
  return element("ol", { class: "passages" }, ...items);
}

/** The title stands above already. A mark in the heading goes with it. */
function withoutHeading({ text, title, marks = [] }) {
  const length = headingLength(text, title);
  const kept = marks.filter(([start]) => start >= length);
  return [Array.from(text).slice(length).join(""), kept.map(([start, end]) => [start - length, end - length])];
}
