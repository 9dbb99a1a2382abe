/** What a person can do with a session: say something, pause it, let it continue, end it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { UndoPlan } from '../contract/undo.ts';
import type { SessionView } from '../contract/views.ts';
import { command } from '../session/commands.ts';
import { useAct, useDraftId } from './acting.ts';
import { request, sessionPath } from './api.ts';
import { useRead } from './hooks.ts';
import { CommandLine, Problem } from './parts.tsx';
import { UndoList } from './undo-plan.tsx';
import { useYou } from './you.ts';

type Verb = 'pause' | 'resume' | 'cancel' | 'undo';

const VERBS: Readonly<Record<Verb, { label: string; does: string; hasReason: boolean }>> = {
  pause: { label: 'Pause', does: 'No new call begins. Calls in flight end first.', hasReason: true },
  resume: { label: 'Continue', does: 'The session continues after the pause or the wait.', hasReason: false },
  cancel: {
    label: 'Cancel',
    does: 'Ends the session for good, once a mutation in flight has settled.',
    hasReason: true,
  },
  undo: {
    label: 'Undo effects',
    does: 'Undoes the effects of the session, and ends it again. Its model is not asked.',
    hasReason: true,
  },
};

interface Props {
  view: SessionView;
  /** Set for a session that has ended. Called when it continues. */
  onAgain: (() => void) | undefined;
}

export function Steer({ view, onAgain }: Props): JSX.Element {
  const { sessionId: id, status, phase } = view;
  const { signature, lacks } = useYou();
  const [text, setText] = useState('');
  const [verb, setVerb] = useState<Verb | null>(null);
  const [reason, setReason] = useState('');
  const draftId = useDraftId(text);
  const talking = useAct();
  // Whoever waits until a message is recorded can still pause and cancel.
  const steering = useAct();
  const [undo, setUndo] = useState(false);
  const undoes = verb === 'undo' || (undo && verb === 'cancel');
  const { value: plan, error: planError } = useRead<UndoPlan>(undoes ? sessionPath(id, '/undo') : null);
  const hasEnded = status.kind !== 'active';

  const post = (path: string, body: object): Promise<unknown> =>
    request('POST', sessionPath(id, path), { ...body, ...signature });
  const say = async (mode: 'queue' | 'interrupt' | 'aside'): Promise<void> => {
    if (text.trim() === '') return;
    await talking.act(async () => {
      // An interruption is not what was queued before, even with the same text.
      await post('/messages', { text, mode, id: `${draftId}-${mode}` });
      setText((now) => (now === text ? '' : now));
    });
  };
  const confirm = async (): Promise<void> => {
    if (verb === null) return;
    const said = VERBS[verb].hasReason && reason !== '' ? { reason } : {};
    // A person with the role decide approves the whole list that is shown. Otherwise, somebody must approve each
    // compensation.
    const asked = lacks('decide') === null ? { digest: plan?.digest } : true;
    await steering.act(async () => {
      await post(undoes ? '/cancel' : `/${verb}`, undoes ? { ...said, undo: asked } : said);
      setVerb(null);
      onAgain?.();
    });
  };
  const [cannotTalk, cannotOperate] = [lacks('talk'), lacks('operate')];
  const hasOpenCalls = phase === 'acting' || phase === 'approval' || phase === 'unknown_effect';
  const isBusy = phase === 'thinking' || hasOpenCalls;
  const held = phase === 'paused' || phase === 'waiting';
  const cannotSend = talking.busy || text.trim() === '';
  const verbs: readonly Verb[] = hasEnded ? ['undo'] : [held ? 'resume' : 'pause', 'cancel'];
  const buttons = verbs.map((name) => (
    <button
      key={name}
      type="button"
      aria-expanded={verb === name}
      disabled={cannotOperate !== null}
      title={cannotOperate ?? VERBS[name].does}
      onClick={() => setVerb(verb === name ? null : name)}
    >
      {VERBS[name].label}
    </button>
  ));
  return (
    <div class="steer">
      {hasEnded ? (
        <div class="answers">{buttons}</div>
      ) : (
        <form
          aria-label="Message"
          onSubmit={(event) => {
            event.preventDefault();
            void say('queue');
          }}
        >
          <textarea
            aria-label="Message to the session"
            placeholder={isBusy ? 'A message waits in the queue until this turn has ended' : 'Message'}
            rows={2}
            disabled={cannotTalk !== null}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void say('queue');
            }}
          />
          <div class="answers">
            <button type="submit" class="primary" disabled={cannotSend}>
              {talking.busy ? 'Sending…' : 'Send'}
            </button>
            {hasOpenCalls && (
              <button
                type="button"
                title="The model answers now, without tools. What is pending stays as it is."
                disabled={cannotSend}
                onClick={() => void say('aside')}
              >
                Ask aside
              </button>
            )}
            {isBusy && (
              <button
                type="button"
                title="Ends this turn early. Calls that have not begun are skipped."
                disabled={cannotSend}
                onClick={() => void say('interrupt')}
              >
                Interrupt
              </button>
            )}
            <span class="grow" />
            {buttons}
          </div>
        </form>
      )}
      {verb !== null && verbs.includes(verb) && (
        <form
          class="panel"
          aria-label={VERBS[verb].label}
          onSubmit={(event) => {
            event.preventDefault();
            void confirm();
          }}
        >
          <p>{VERBS[verb].does}</p>
          {VERBS[verb].hasReason && (
            <label class="field">
              <span>
                Reason<small> optional</small>
              </span>
              <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
            </label>
          )}
          {verb === 'cancel' && (
            <label class="line">
              <input
                type="checkbox"
                checked={undo}
                onChange={(event) => setUndo(event.currentTarget.checked)}
              />
              <span>First undo what can be undone</span>
            </label>
          )}
          {undoes && <UndoList plan={plan} error={planError} />}
          {undoes && lacks('decide') !== null && (
            <p class="hint">Somebody with the role decide then approves each.</p>
          )}
          <div class="answers">
            <button type="submit" class="primary" disabled={steering.busy || (undoes && plan === null)}>
              Confirm: {verb === 'cancel' && undo ? 'undo and cancel' : VERBS[verb].label.toLowerCase()}
            </button>
            <button type="button" onClick={() => setVerb(null)}>
              Back
            </button>
          </div>
          <CommandLine
            command={command(
              undoes ? 'cancel' : verb,
              id,
              ...(undoes ? ['--undo'] : []),
              ...(VERBS[verb].hasReason && reason !== '' ? ['--reason', reason] : []),
            )}
          />
        </form>
      )}
      {[hasEnded ? null : cannotTalk, cannotOperate].map(
        (reason) => reason !== null && <p class="hint">{reason}</p>,
      )}
      {text.trim() !== '' && <CommandLine command={command('send', id, text)} />}
      <Problem error={talking.error} />
      <Problem error={steering.error} />
    </div>
  );
}
