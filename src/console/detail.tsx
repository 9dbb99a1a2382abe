/** One item of the inbox: what it is about, and the answers. */
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import type { InboxItem } from '../contract/inbox.ts';
import type { CallDetail } from '../contract/views.ts';
import { SHOWN_DIGITS } from '../session/commands.ts';
import { AnswerPanel } from './answer-panel.tsx';
import { ANSWERS } from './answers.ts';
import { sessionPath } from './api.ts';
import { CallLife } from './call-life.tsx';
import type { Decision } from './decided.tsx';
import { linkTo, useRead } from './hooks.ts';
import { isTyping } from './keys.ts';
import { CommandLine, Copy, Problem, Time, Value } from './parts.tsx';
import { visible } from './text.ts';

const EFFECTS: Readonly<Record<string, string>> = {
  read: 'read: it changes nothing',
  idempotent: 'idempotent: it is safe to repeat',
  mutate: 'mutate: it changes something outside, once',
};

interface Props {
  item: InboxItem;
  by: string;
  /** The answer that is being given. */
  answer: string | null;
  onAnswer: (answer: string | null) => void;
  onDone: (decision: Decision) => void;
  /** Called when the item is no longer what it was. */
  onStale: () => Promise<void>;
}

export function Detail({ item, by, answer, onAnswer, onDone, onStale }: Props): JSX.Element {
  const { sessionId, call, reason, since, until, agent, tenant } = item;
  const path = call === null ? null : sessionPath(sessionId, `/calls/${encodeURIComponent(call.callId)}`);
  const read = useRead<CallDetail>(path);
  const shown = item.answers.filter((each) => each.answer in ANSWERS);

  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (answer !== null || isTyping(event)) return;
      const meant = shown.find((each) => ANSWERS[each.answer]?.key === event.key);
      if (meant === undefined) return;
      event.preventDefault();
      onAnswer(meant.answer);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  });

  const effect = call?.effect ?? read.value?.tool?.effect;
  const policy = read.value?.tool?.approval;
  return (
    <article>
      <header>
        <h1>{visible(call?.tool ?? reason)}</h1>
        <p class="facts">
          <a href={linkTo({ name: 'session', id: sessionId })}>{visible(sessionId)}</a>
          {agent !== null && <span>{visible(agent)}</span>}
          {tenant !== null && <span>{visible(tenant)}</span>}
        </p>
      </header>
      {call !== null && <p>{visible(reason)}</p>}
      {call !== null && <Value value={call.args} />}
      <dl class="facts-list">
        {effect !== undefined && <Fact name="Effect">{EFFECTS[effect] ?? effect}</Fact>}
        {read.value?.tool?.description !== undefined && read.value.tool.description !== '' && (
          <Fact name="Tool">{visible(read.value.tool.description)}</Fact>
        )}
        {since !== null && (
          <Fact name={call === null ? 'Since' : 'Asked'}>
            <Time at={since} />
          </Fact>
        )}
        {until !== null && (
          <Fact name="Until">
            <Time at={until} until />
            {policy !== undefined &&
              `, then it is ${policy.onExpiry === 'approve' ? 'approved' : 'rejected'}`}
          </Fact>
        )}
        {read.value !== null && read.value.asked.message !== '' && (
          <Fact name="Message">
            <q>{visible(read.value.asked.message)}</q>
          </Fact>
        )}
        {read.value !== null && read.value.asked.text !== '' && (
          <Fact name="Why">
            <q>{visible(read.value.asked.text)}</q>
          </Fact>
        )}
        {call !== null && (
          <Fact name="Digest">
            <Copy text={call.argsDigest}>{call.argsDigest.slice(0, SHOWN_DIGITS)}</Copy>
          </Fact>
        )}
      </dl>
      {read.value !== null && read.value.call.dispatches.length > 0 && <CallLife call={read.value.call} />}
      <Problem error={read.error} />
      {answer === null ? (
        <>
          <div class="answers">
            {shown.map((each) => (
              <button key={each.answer} type="button" title={each.does} onClick={() => onAnswer(each.answer)}>
                {ANSWERS[each.answer]?.label} <kbd>{ANSWERS[each.answer]?.key}</kbd>
              </button>
            ))}
          </div>
          <dl class="does">
            {item.answers.map((each) => (
              <div key={each.answer}>
                <dt>{ANSWERS[each.answer]?.label ?? each.answer}</dt>
                <dd>
                  {each.does}
                  <CommandLine command={each.command} />
                </dd>
              </div>
            ))}
          </dl>
        </>
      ) : (
        <AnswerPanel
          key={answer}
          item={item}
          answer={answer}
          by={by}
          schema={read.value?.tool?.inputSchema}
          onBack={() => onAnswer(null)}
          onDone={onDone}
          onStale={onStale}
        />
      )}
    </article>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
