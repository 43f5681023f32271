/** The policy that the next question is asked with, and what it would make of those asked before. */

import { element } from "./dom.js";
import { routeUnder, tally } from "./policy.js";
import { figure, MODE_NAMES } from "./wording.js";

// Where the model's own word decides, the slider rests in the middle until it is moved.
const RESTING = 0.5;
const COLUMNS = 28;
const TALLEST = 6;

/** Why it may be unknown what a policy would do. */
const DOUBTS = {
  token: "What the model’s own word was is known of questions that were asked that way.",
  threshold: "P(RET) is known of questions at which the model was asked for it, and could say.",
};

export class Panel {
  /**
   * @param {Object} settings The server's.
   * @param {function(): void} onChange Called when another policy is chosen.
   */
  constructor(settings, onChange) {
    this.slider = document.getElementById("slider");
    this.number = document.getElementById("threshold");
    this.k = document.getElementById("k");
    this.rules = document.getElementById("rules");
    this.strip = document.getElementById("strip");
    this.shares = document.getElementById("shares");
    this.modes = this.#makeModes(settings);
    // Some retrievers cannot be told how many to bring; others do not say how many they bring by themselves.
    document.getElementById("k-row").hidden = settings.max_k === null;
    this.k.disabled = settings.max_k === null;
    this.k.max = settings.max_k;
    this.k.required = settings.k !== null;
    this.k.value = settings.k;
    // The last one that could be read: while a number is being typed, the field may hold none.
    this.threshold = settings.threshold ?? RESTING;
    this.number.value = this.threshold;
    this.slider.value = this.threshold;
    this.#chooseRule(settings.threshold === null ? "token" : "threshold");
    this.#listen(onChange);
  }

  /** @returns {{mode: string, threshold: number|null, k: number|null}} */
  get policy() {
    const mode = this.modes.find((radio) => radio.checked).value;
    const byThreshold = this.#rule("threshold").checked;
    const k = this.k.disabled || this.k.value === "" ? null : this.k.valueAsNumber;
    return { mode, threshold: byThreshold ? this.threshold : null, k };
  }

  /**
   * Show what the policy makes of the session.
   *
   * @param {Array<import("./policy.js").Decision>} decisions Newest first.
   */
  show(decisions) {
    const { policy } = this;
    this.rules.disabled = policy.mode !== "adaptive";
    this.rules.classList.toggle("by-word", policy.threshold === null);
    const routes = decisions.map((decision) => routeUnder(decision, policy));
    const taken = tally(decisions.map((decision) => decision.route));
    const would = tally(routes);
    const changed = routes.filter((route, index) => route !== null && route !== decisions[index].route).length;
    this.#drawStrip(decisions, routes);
    this.shares.replaceChildren(...shares(taken, would, changed, policy));
    this.slider.setAttribute("aria-valuetext", `${figure(this.slider.valueAsNumber)}: ${wouldWords(would)}`);
  }

  #makeModes({ mode, modes }) {
    const labels = modes.map((name) => {
      const chosen = { value: name, checked: name === mode };
      const radio = element("input", { type: "radio", name: "mode", form: "form", ...chosen });
      return element("label", {}, radio, element("span", {}, MODE_NAMES[name] ?? name));
    });
    const holder = document.getElementById("modes");
    holder.append(...labels);
    return Array.from(holder.querySelectorAll("input"));
  }

  #rule(name) {
    return this.rules.querySelector(`[name=rule][value=${name}]`);
  }

  #chooseRule(name) {
    this.#rule(name).checked = true;
  }

  #listen(onChange) {
    this.slider.addEventListener("input", () => {
      this.number.value = this.slider.value;
    });
    this.number.addEventListener("input", () => {
      if (this.number.validity.valid) this.slider.value = this.number.value;
    });
    for (const field of [this.slider, this.number]) {
      field.addEventListener("input", () => {
        if (!this.number.validity.valid) return;
        this.threshold = this.number.valueAsNumber;
        this.#chooseRule("threshold");
      });
    }
    // Events bubble: the fields' own listeners have been called by then.
    document.getElementById("panel").addEventListener("input", onChange);
  }

  #drawStrip(decisions, routes) {
    const heights = new Array(COLUMNS + 1).fill(0);
    const dots = [];
    for (const [index, { probability, kind, route }] of decisions.entries()) {
      if (probability === null) continue;
      const column = Math.round(probability * COLUMNS);
      const dot = element("span", { class: "dot", "data-route": routes[index] ?? route });
      dot.classList.toggle("bound", kind === "upper_bound");
      dot.classList.toggle("changed", routes[index] !== null && routes[index] !== route);
      dot.style.setProperty("--probability", probability);
      dot.style.setProperty("--row", Math.min(heights[column]++, TALLEST));
      dots.push(dot);
    }
    const line = element("span", { class: "line" });
    this.strip.parentElement.style.setProperty("--threshold", this.threshold);
    this.strip.replaceChildren(line, ...dots);
    this.strip.classList.toggle("empty", dots.length === 0);
  }
}

function shares(taken, would, changed, policy) {
  if (taken.total === 0) return [element("p", { class: "quiet" }, "Each question becomes a dot above, at its P(RET).")];
  const change = changed === 0 ? "No question would take another route." : `${changed} would take another route.`;
  const doubt = would.unknown === 0 ? "" : ` ${DOUBTS[policy.threshold === null ? "token" : "threshold"]}`;
  return [
    share("taken", "So far", taken, `${taken.retrieved} of ${taken.total} retrieved`),
    share("would", "As set now", would, wouldWords(would)),
    element("p", { class: "quiet", id: "changed" }, `${change}${doubt}`),
  ];
}

function share(name, title, { total, retrieved, unknown }, words) {
  const bar = element("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--retrieved", retrieved / total);
  bar.style.setProperty("--unknown", unknown / total);
  return element("p", { class: "share", id: name }, element("span", {}, title), element("b", {}, words), bar);
}

function wouldWords({ total, retrieved, unknown }) {
  if (total > 0 && unknown === total) return `unknown for all ${total}`;
  return `${retrieved} of ${total - unknown} would be retrieved${unknown > 0 ? `, ${unknown} unknown` : ""}`;
}
