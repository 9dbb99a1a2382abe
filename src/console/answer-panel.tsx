/** The step before an answer is sent: its fields, what it would do, and its command. */
import type { JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { InboxItem } from '../contract/inbox.ts';
import { useAct } from './acting.ts';
import { ANSWERS, answering, capOf, labelOf, refusal } from './answers.ts';
import { request } from './api.ts';
import { ArgumentForm } from './argument-form.tsx';
import type { Decision } from './decided.tsx';
import { asApiError } from './hooks.ts';
import { keyOf } from './item-key.ts';
import { CommandLine, Problem } from './parts.tsx';
import { visible } from './text.ts';
import { useYou } from './you.ts';

interface Props {
  item: InboxItem;
  /** Whether the inbox has the item no more: what was typed can be read, and not sent. */
  gone: boolean;
  answer: string;
  /** The JSON schema of what the form edits. `undefined` when nobody knows it: the panel then shows JSON. */
  schema: unknown;
  /** Whether the schema is still being read: nothing can be sent before the person sees what is sent. */
  reading: boolean;
  onBack: () => void;
  onDone: (decision: Decision) => void;
  onStale: () => Promise<void>;
}

/** The label of the text field, by answer. */
const QUESTION_FIELDS: Readonly<Record<string, string>> = {
  respond: 'Your answer',
  reject: 'Reason, for the model',
};

/** Errors that say that somebody else has answered, or that the item has changed. */
const STALE: ReadonlySet<string> = new Set([
  'CALL_NOT_PENDING',
  'UNKNOWN_CALL',
  'DIGEST_MISMATCH',
  'DISPATCH_MISMATCH',
  'SESSION_CLOSED',
]);

export function AnswerPanel(props: Props): JSX.Element | null {
  const { item, gone, answer, schema, reading, onBack, onDone, onStale } = props;
  const you = useYou();
  const { signature, name } = you;
  const shown = ANSWERS[answer];
  const question = item.call?.question;
  const isForm = shown?.input === 'args' || (answer === 'respond' && question?.answer !== undefined);
  const cap = capOf(item);
  const [text, setText] = useState(cap === null ? '' : String(twoDigits(cap.atLeast * 2)));
  const [args, setArgs] = useState<unknown>(answer === 'edit' ? item.call?.args : {});
  const { act, busy, error } = useAct();
  const form = useRef<HTMLFormElement>(null);

  useLayoutEffect(() => form.current?.focus(), []);
  useLayoutEffect(() => {
    const panel = form.current;
    // The person may be elsewhere by the time the fields are there.
    if (reading || panel?.contains(document.activeElement) !== true) return;
    panel.querySelector<HTMLElement>('input, textarea, select, [type=submit]')?.focus();
  }, [reading]);

  const given = answering(item, answer, { signature, text, args });
  if (shown === undefined || given === null) return null;
  const refused = refusal(item, answer, you);
  const isWrong = gone || reading || refused !== null || (isForm && args === undefined);
  const label = labelOf(item, answer);
  const submit = async (): Promise<void> => {
    if (isWrong || form.current?.reportValidity() === false) return;
    await act(async () => {
      try {
        await request(given.method, given.path, given.body);
      } catch (error) {
        if (STALE.has(asApiError(error).code)) void onStale();
        throw error;
      }
      onDone({ key: keyOf(item), item, answer, by: name, at: new Date().toISOString() });
    });
  };
  const does = item.answers.find((each) => each.answer === answer)?.does ?? '';
  return (
    <form
      ref={form}
      class="panel"
      aria-label={label}
      tabIndex={-1}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.metaKey || event.ctrlKey)) return;
        event.preventDefault();
        void submit();
      }}
    >
      <p>
        <strong>{label}.</strong> {does}
      </p>
      {reading && (
        <p class="hint" role="status">
          Reading…
        </p>
      )}
      {isForm && !reading && (
        <ArgumentForm schema={schema} args={answer === 'edit' ? item.call?.args : {}} onChange={setArgs} />
      )}
      {answer === 'respond' && question?.options !== undefined && !isForm && (
        <div class="answers">
          {question.options.map((option) => (
            <button key={option} type="button" aria-pressed={text === option} onClick={() => setText(option)}>
              {visible(option)}
            </button>
          ))}
        </div>
      )}
      {!isForm && shown.input !== 'none' && (
        <label class="field">
          <span>
            {question === undefined ? shown.field : QUESTION_FIELDS[answer]}
            {shown.input === 'reason' && <small> optional</small>}
            {shown.input === 'cap' && cap !== null && (
              <small>
                {' '}
                {cap.cap}, at least {cap.atLeast}
              </small>
            )}
          </span>
          {shown.input === 'cap' ? (
            <input
              type="number"
              step="any"
              min={cap?.atLeast ?? 0}
              required
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          ) : (
            <textarea
              rows={3}
              required={shown.input === 'json'}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          )}
        </label>
      )}
      <Problem error={error} />
      <div class="answers">
        {!gone && (
          <button type="submit" class="primary" disabled={busy || isWrong}>
            {busy ? 'Sending…' : `Confirm: ${label.toLowerCase()}`}
          </button>
        )}
        <button type="button" onClick={onBack}>
          Back <kbd>Esc</kbd>
        </button>
        {shown.input !== 'none' && !gone && <span class="hint">Ctrl+Enter confirms</span>}
      </div>
      {refused !== null && <p class="hint">{refused}</p>}
      {!gone && <CommandLine command={given.command} />}
    </form>
  );
}

/** A number with two digits. */
function twoDigits(value: number): number {
  return Number(value.toPrecision(2));
}
