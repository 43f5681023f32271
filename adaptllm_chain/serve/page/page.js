/** The page: asks, listens, and keeps the session. */

import { ask, readSettings, ServiceError } from "./api.js";
import { Panel } from "./panel.js";
import { routeUnder } from "./policy.js";
import { Turn } from "./turn.js";
import { problemParts, TurnView } from "./turn_view.js";
import { figure, probabilityWords, ROUTE_NAMES } from "./wording.js";

const KEY = "adaptllm.key";

const at = (id) => document.getElementById(id);
const form = at("form");
const question = at("question");
const askButton = at("ask");
const stopButton = at("stop");
const keyField = at("key");

/** @type {Array<TurnView>} Newest first. */
const session = [];
/** @type {AbortController|null} Of the question that is being answered. */
let running = null;
let settings;
let panel;

async function start() {
  try {
    settings = await readSettings();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    showNotice(error);
    return;
  }
  at("notice").hidden = true;
  panel = new Panel(settings, showWhatIf);
  at("about").textContent = about(settings);
  if (settings.needs_key) showKeyField();
  listen();
  checkQuestion();
  showWhatIf();
  askButton.disabled = false;
  question.focus();
}

function listen() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running === null) askQuestion(question.value.trim());
  });
  question.addEventListener("keydown", (event) => {
    // While an input method composes, Enter chooses a word.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  question.addEventListener("input", checkQuestion);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") stop();
  });
  stopButton.addEventListener("click", (event) => {
    // The second click of a double click on Ask lands here.
    if (event.detail < 2) stop();
  });
  keyField.addEventListener("change", () => sessionStorage.setItem(KEY, keyField.value));
  for (const example of at("examples").querySelectorAll("button")) {
    example.addEventListener("click", () => askAgain(example.textContent));
  }
}

function stop() {
  running?.abort();
}

function askAgain(text) {
  question.value = text;
  checkQuestion();
  form.requestSubmit();
  // The button that was pressed goes away. Where the form is not complete, the browser moves the focus itself.
  if (running !== null) stopButton.focus();
}

function checkQuestion() {
  const text = question.value.trim();
  // The server counts code points.
  const length = Array.from(text).length;
  const most = settings.max_question_chars;
  const tooLong = length > most ? `This is ${length} characters long; the server takes at most ${most}.` : "";
  question.setCustomValidity(text === "" ? "Type a question." : tooLong);
}

async function askQuestion(text) {
  const { mode, threshold, k } = panel.policy;
  const turn = new Turn(text, { mode, threshold, k });
  const view = open(turn);
  running = new AbortController();
  showRunning();
  try {
    const request = { question: text, mode };
    // To other modes a threshold says nothing, and the server refuses what says nothing.
    if (mode === "adaptive") request.threshold = threshold;
    if (k !== null) request.k = k;
    for await (const event of ask(request, { key: keyField.value, signal: running.signal })) {
      turn.take(event);
      if (event.name === "token") view.showAnswer();
      else show(view);
      if (event.name === "decision") at("heard-decision").textContent = decisionWords(turn.decision);
    }
    at("heard-answer").textContent = `Answer: ${turn.answer}`;
  } catch (error) {
    end(turn, error);
    show(view);
    // What is neither the visitor's wish nor told by the server is this page's fault: it belongs into the console too.
    if (turn.state === "failed" && turn.error !== error) throw error;
  } finally {
    running = null;
    showRunning();
  }
}

/** A card for a question, in the place of the one before. */
function open(turn) {
  at("welcome")?.remove();
  const before = session[0];
  if (before) {
    before.fold.open = false;
    at("earlier").hidden = false;
    at("earlier-title").after(before.root);
  }
  const view = new TurnView(turn, askAgain);
  session.unshift(view);
  at("latest").append(view.root);
  question.value = "";
  checkQuestion();
  // The same words twice would not be read out twice.
  for (const id of ["heard-decision", "heard-answer"]) at(id).textContent = "";
  return view;
}

/** End a question that was not answered: it was stopped, or something went wrong. */
function end(turn, error) {
  if (error.name === "AbortError") {
    turn.stop();
    at("heard-answer").textContent = "Stopped.";
    return;
  }
  const shown = error instanceof ServiceError ? error : new ServiceError(`This page failed: ${error.message}`);
  turn.fail(shown);
  at("heard-answer").textContent = [shown.message, shown.hint].filter(Boolean).join(" ");
  if (shown.status === 401) showKeyField();
}

function show(view) {
  view.show();
  showWhatIf();
}

/** Show, in the panel and on each card, what the chosen policy makes of the session. */
function showWhatIf() {
  const { policy } = panel;
  const decided = session.filter(({ turn }) => turn.decision !== null);
  panel.show(decided.map(({ turn }) => turn.decision));
  document.documentElement.style.setProperty("--what-if", policy.threshold);
  document.documentElement.toggleAttribute("data-what-if", policy.mode === "adaptive" && policy.threshold !== null);
  const seen = new Set();
  for (const view of decided) {
    const { question: text, decision } = view.turn;
    const route = routeUnder(decision, policy);
    // Asked again already: the newer card has the button.
    view.showWhatIf(route === decision.route ? null : route, policy, !seen.has(text));
    seen.add(text);
  }
  holdAgainButtons();
}

function showRunning() {
  const asking = running !== null;
  const focused = document.activeElement;
  askButton.hidden = asking;
  stopButton.hidden = !asking;
  // A button that goes hands its focus to the one that comes.
  if (focused === askButton && asking) stopButton.focus();
  if (focused === stopButton && !asking) askButton.focus();
  holdAgainButtons();
}

function holdAgainButtons() {
  for (const button of document.querySelectorAll("button.again")) button.disabled = running !== null;
}

function showKeyField() {
  at("key-row").hidden = false;
  keyField.required = true;
  keyField.value = sessionStorage.getItem(KEY) ?? "";
}

/** Say that the page could not start, and offer to try again. */
function showNotice(error) {
  const again = document.createElement("button");
  again.textContent = "Try again";
  again.addEventListener("click", start, { once: true });
  at("notice").replaceChildren(...problemParts(error), again);
  at("notice").hidden = false;
}

function about({ model, adapter, passages }) {
  const parts = [`Model ${model}`, adapter === null ? "no adapter" : `adapter ${adapter}`];
  if (passages !== null) parts.push(`${passages.toLocaleString("en-GB")} passages`);
  return parts.join(" · ");
}

function decisionWords(decision) {
  const cut = decision.threshold === null ? "" : `, threshold ${figure(decision.threshold)}`;
  return `${ROUTE_NAMES[decision.route]}. ${probabilityWords(decision)}${cut}.`;
}

await start();
