/** A question of the session as a card that folds. */

import { element } from "./dom.js";
import { gauge } from "./gauge.js";
import { passageList } from "./passages.js";
import { ROUTE_NAMES, whatIfWords } from "./wording.js";

const STATE_NAMES = { waiting: "Asking …", answering: "", answered: "", stopped: "Stopped", failed: "No answer" };

const KIND_NOTES = {
  first_piece: "≈: of the first piece of <RET>, an upper estimate.",
  upper_bound: "<RET> is not among the words whose probability the model lists: only a bound is known.",
  unknown: "The model reports no probabilities.",
};

/** Rules that decide without asking the model whether it knows. */
const BLIND_RULES = ["never", "always", "popularity", "decision_model"];

export class TurnView {
  /**
   * @param {import("./turn.js").Turn} turn
   * @param {function(string): void} askAgain Asks a question with the policy as it is chosen now.
   */
  constructor(turn, askAgain) {
    this.turn = turn;
    this.badge = element("span", { class: "badge" });
    this.preview = element("span", { class: "preview" });
    this.decision = element("div", { class: "decision" });
    this.answer = element("p", { class: "answer" });
    this.passages = element("div", { class: "read" });
    this.cost = element("p", { class: "quiet cost" });
    this.problem = element("div", { class: "problem", hidden: true });
    this.change = element("p", { class: "change", hidden: true });
    this.fold = element(
      "details",
      { open: true },
      element("summary", {}, element("span", { class: "asked" }, turn.question), this.badge, this.preview),
      element("div", { class: "body" }, this.decision, this.answer, this.passages, this.cost),
    );
    this.root = element("article", { class: "turn" }, this.fold, this.problem, this.change);
    this.again = () => {
      const button = element("button", { type: "button", class: "again" }, "Ask again");
      button.addEventListener("click", () => askAgain(turn.question));
      return button;
    };
    this.show();
  }

  /** Show all that is known. */
  show() {
    const { turn } = this;
    this.root.dataset.state = turn.state;
    this.root.setAttribute("aria-busy", String(turn.open));
    if (turn.decision) {
      this.root.dataset.route = turn.decision.route;
      this.decision.replaceChildren(gauge(turn.decision), ...reasons(turn.decision));
    }
    this.badge.textContent = STATE_NAMES[turn.state] || ROUTE_NAMES[turn.decision.route];
    this.passages.replaceChildren(...read(turn));
    this.cost.textContent = turn.seconds === null ? "" : `Answered in ${turn.seconds.toFixed(2)} s`;
    this.showAnswer();
    if (turn.error) this.#showProblem(turn.error);
    if (turn.state === "stopped") this.#showProblem({ message: "Stopped before the answer was complete." });
  }

  /** Show the answer as far as it has come. */
  showAnswer() {
    const { answer, state } = this.turn;
    this.answer.textContent = answer === "" && state === "answered" ? "(an empty answer)" : answer;
    this.preview.textContent = answer;
  }

  /**
   * Say what the policy as it is chosen now would change.
   *
   * @param {"direct"|"retrieve"|null} route The route it would take; null: as it was, or not known.
   * @param {import("./policy.js").Policy} policy
   * @param {boolean} offersAgain Whether it may be asked again from here.
   */
  showWhatIf(route, policy, offersAgain) {
    this.change.hidden = route === null;
    this.root.toggleAttribute("data-changes", route !== null);
    if (route === null) {
      this.change.replaceChildren();
      return;
    }
    this.change.dataset.route = route;
    this.change.replaceChildren(element("span", {}, whatIfWords(route, policy)));
    if (offersAgain) this.change.append(this.again());
  }

  #showProblem(error) {
    this.problem.hidden = false;
    this.problem.replaceChildren(...problemParts(error), this.again());
  }
}

/**
 * An error in its three parts.
 *
 * @param {{message: string, expected?: string|null, hint?: string|null}} error
 * @returns {Array<HTMLElement>}
 */
export function problemParts({ message, expected, hint }) {
  return [
    element("p", { class: "message" }, message),
    ...(expected ? [element("p", {}, element("b", {}, "Expected: "), expected)] : []),
    ...(hint ? [element("p", {}, element("b", {}, "What to do: "), hint)] : []),
  ];
}

function reasons({ reason, rule, kind }) {
  const note = BLIND_RULES.includes(rule) ? "The model was not asked whether it knows." : KIND_NOTES[kind];
  return [
    element("p", { class: "reason" }, `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`),
    ...(note ? [element("p", { class: "quiet" }, note)] : []),
  ];
}

function read({ passages, decision, state }) {
  if (decision?.route !== "retrieve") return [];
  if (passages.length > 0) return [element("h3", {}, "Read for this answer"), passageList(passages)];
  return state === "answered" ? [element("p", { class: "quiet" }, "The search brought no passage.")] : [];
}
