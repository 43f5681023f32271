/** P(RET) from 0 to 1, with the threshold on it. */

import { element } from "./dom.js";
import { figure, probabilityWords, ROUTE_NAMES } from "./wording.js";

/**
 * Draw a gauge.
 *
 * @param {import("./policy.js").Decision} decision
 * @returns {HTMLElement} Its second, dashed mark follows `--what-if` of the page.
 */
export function gauge(decision) {
  const { probability, kind, threshold, route } = decision;
  const words = probabilityWords(decision);
  const cut = threshold === null ? "no threshold" : `threshold ${figure(threshold)}`;
  const track = element("div", { class: "track" });
  const drawn = element(
    "div",
    { class: "gauge", role: "img", "aria-label": `${words}, ${cut}: ${ROUTE_NAMES[route]}`, "data-route": route },
    element("span", { class: "end" }, "0"),
    track,
    element("span", { class: "end" }, "1"),
  );
  track.classList.toggle("uncut", threshold === null);
  track.classList.toggle("unknown", probability === null);
  track.append(element("span", { class: "ghost" }));
  if (threshold !== null) {
    drawn.style.setProperty("--threshold", threshold);
    track.append(element("span", { class: "cut" }), element("span", { class: "label below" }, cut));
  }
  if (probability !== null) {
    drawn.style.setProperty("--probability", probability);
    track.append(element("span", { class: kind === "upper_bound" ? "bound" : "needle" }));
  }
  track.append(element("span", { class: "label above" }, words));
  return drawn;
}
