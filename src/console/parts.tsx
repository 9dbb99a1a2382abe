/** Small parts that all places use. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ApiError } from './api.ts';
import { useNow } from './hooks.ts';
import { readable, span, visible } from './text.ts';

/** A relative time, with the exact one on hover. */
export function Time({ at, until = false }: { at: string; until?: boolean }): JSX.Element {
  const now = useNow();
  const ms = Date.parse(at) - now;
  const text = until ? (ms > 0 ? `in ${span(ms)}` : 'now') : ms > -5_000 ? 'now' : `${span(-ms)} ago`;
  return (
    <time dateTime={at} title={at}>
      {text}
    </time>
  );
}

/** A text to copy, such as an id or a command. */
export function Copy({ text, children }: { text: string; children?: ComponentChildren }): JSX.Element {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1_000);
    });
  };
  return (
    <button type="button" class="copy" onClick={copy} title="Copy">
      <span>{children ?? visible(text)}</span>
      <span class="hint" aria-live="polite">
        {copied ? ' copied' : ''}
      </span>
    </button>
  );
}

/** The command of the CLI that does the same. */
export function CommandLine({ command }: { command: string }): JSX.Element {
  return (
    <div class="command">
      <span aria-hidden="true">$ </span>
      <Copy text={command} />
    </div>
  );
}

/** A JSON value: the fields of an object in lines, all else as text. */
export function Value({ value }: { value: unknown }): JSX.Element {
  if (
    typeof value !== 'object' ||
    value === null ||
    Array.isArray(value) ||
    Object.keys(value).length === 0
  ) {
    return <pre class="value">{readable(value)}</pre>;
  }
  return (
    <dl class="fields">
      {Object.entries(value).map(([name, field]) => (
        <div key={name}>
          <dt>{visible(name)}</dt>
          <dd>
            <pre class="value">{readable(field)}</pre>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What went wrong, and the code that the docs list. */
export function Problem({ error }: { error: ApiError | null }): JSX.Element | null {
  if (error === null) return null;
  return (
    <p class="problem" role="alert">
      <strong>{error.code}</strong> {visible(error.message)}
    </p>
  );
}

const PHASES: Readonly<Record<string, string>> = {
  starting: 'starting',
  idle: 'waits for a message',
  thinking: 'the model answers',
  acting: 'runs tools',
  approval: 'waits for an approval',
  unknown_effect: 'waits: an outcome is unknown',
  waiting: 'waits',
  paused: 'paused',
  cancelling: 'ends',
  closed: 'closed',
  active: 'works, or waits for a message',
  unknown: 'not taken up yet',
};
const ATTENTION: ReadonlySet<string> = new Set([
  'approval',
  'unknown_effect',
  'waiting',
  'failed',
  'terminated',
]);

/** A status in words. The colour only repeats them. */
export function Status({ status }: { status: string }): JSX.Element {
  const tone = ATTENTION.has(status) ? 'attention' : status === 'paused' ? 'held' : 'calm';
  return <span class={`status ${tone}`}>{PHASES[status] ?? visible(status)}</span>;
}

/** A hint in place of an empty list. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
