/** Messages that wait for the end of the turn: they can be changed and withdrawn. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { QueuedMessage } from '../contract/state.ts';
import { command } from '../session/commands.ts';
import { useAct } from './acting.ts';
import { request, sessionPath } from './api.ts';
import { CommandLine, Problem, Time } from './parts.tsx';
import { visible } from './text.ts';
import { useYou } from './you.ts';

export function Queue({
  sessionId,
  messages,
}: {
  sessionId: string;
  messages: readonly QueuedMessage[];
}): JSX.Element | null {
  if (messages.length === 0) return null;
  return (
    <section class="queue" aria-label="Queue">
      <p class="hint">Waits until this turn has ended:</p>
      <ol>
        {messages.map((message) => (
          <Queued key={message.id} sessionId={sessionId} message={message} />
        ))}
      </ol>
    </section>
  );
}

function Queued({
  sessionId,
  message: { id, text, by, at, pin, edited, blocks, aside },
}: {
  sessionId: string;
  message: QueuedMessage;
}): JSX.Element {
  const { signature, lacks } = useYou();
  const [step, setStep] = useState<'edit' | 'withdraw' | null>(null);
  const [draft, setDraft] = useState(text);
  const { act, busy, error } = useAct();
  const path = sessionPath(sessionId, `/queue/${encodeURIComponent(id)}`);
  const refusal = lacks('talk');
  const hasFiles = blocks !== undefined;

  const confirm = (): Promise<void> =>
    act(async () => {
      if (step === 'edit') await request('PUT', path, { text: draft, ...signature });
      else await request('POST', `${path}/withdrawal`, signature);
      setStep(null);
    });
  return (
    <li>
      <p class="line">
        <span class="what">
          {visible(text)}
          {hasFiles && ' (with files)'}
        </span>
        <span class="hint">
          {visible(by)} <Time at={at} />
          {pin === true && ', pinned'}
          {aside === true && ', to be answered aside'}
          {edited !== undefined && `, changed by ${visible(edited.by)}`}
        </span>
        {step === null && (
          <>
            <button
              type="button"
              class="plain"
              disabled={refusal !== null || hasFiles}
              title={refusal ?? (hasFiles ? 'A message with files: withdraw it and send another' : '')}
              onClick={() => {
                setDraft(text);
                setStep('edit');
              }}
            >
              Edit
            </button>
            <button
              type="button"
              class="plain"
              disabled={refusal !== null}
              title={refusal ?? ''}
              onClick={() => setStep('withdraw')}
            >
              Withdraw
            </button>
          </>
        )}
      </p>
      {step !== null && (
        <form
          class="panel"
          aria-label={step === 'edit' ? 'Edit the message' : 'Withdraw the message'}
          onSubmit={(event) => {
            event.preventDefault();
            void confirm();
          }}
        >
          {step === 'edit' ? (
            <textarea
              aria-label="The message"
              rows={2}
              required
              value={draft}
              onInput={(event) => setDraft(event.currentTarget.value)}
            />
          ) : (
            <p>The model never sees it.</p>
          )}
          <div class="answers">
            <button type="submit" class="primary" disabled={busy}>
              Confirm: {step}
            </button>
            <button type="button" onClick={() => setStep(null)}>
              Back
            </button>
          </div>
          <CommandLine
            command={command(
              'queue',
              sessionId,
              id,
              ...(step === 'edit' ? ['--edit', draft] : ['--withdraw']),
            )}
          />
        </form>
      )}
      <Problem error={error} />
    </li>
  );
}
