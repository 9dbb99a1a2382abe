/** One item of the inbox: what it is about, and the answers. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect } from 'preact/hooks';
import type { InboxItem } from '../contract/inbox.ts';
import type { CallDetail } from '../contract/views.ts';
import { SHOWN_DIGITS } from '../session/commands.ts';
import { AnswerPanel } from './answer-panel.tsx';
import { ANSWERS, canGive, labelOf, refusal } from './answers.ts';
import { sessionPath } from './api.ts';
import { CallLife } from './call-life.tsx';
import type { Decision } from './decided.tsx';
import { linkTo, useRead } from './hooks.ts';
import { isTyping } from './keys.ts';
import { CommandLine, Copy, Problem, Time, Value } from './parts.tsx';
import { needsInWords, readable, visible } from './text.ts';
import { useYou } from './you.ts';

const EFFECTS: Readonly<Record<string, string>> = {
  read: 'read: it changes nothing',
  idempotent: 'idempotent: it is safe to repeat',
  mutate: 'mutate: it changes something outside, once',
};

interface Props {
  item: InboxItem;
  /** Whether the inbox has the item no more. */
  gone: boolean;
  /** The answer that is being given. */
  answer: string | null;
  onAnswer: (answer: string | null) => void;
  onDone: (decision: Decision) => void;
  /** Called when the item has changed. */
  onStale: () => Promise<void>;
}

export function Detail({ item, gone, answer, onAnswer, onDone, onStale }: Props): JSX.Element {
  const { sessionId, call, reason, since, until, agent, tenant } = item;
  const path = call === null ? null : sessionPath(sessionId, `/calls/${encodeURIComponent(call.callId)}`);
  const read = useRead<CallDetail>(path);
  const { again } = read;
  const you = useYou();
  const shown = item.answers.filter((each) => canGive(item, each.answer));
  const refusals = new Set(shown.flatMap((each) => refusal(item, each.answer, you) ?? []));

  // Says who has answered.
  useEffect(() => {
    if (gone) void again();
  }, [gone, again]);
  // Before the next event: a key must not answer an item that was shown a moment ago.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (gone || answer !== null || isTyping(event)) return;
      const meant = shown.find(
        (each) => ANSWERS[each.answer]?.key === event.key && refusal(item, each.answer, you) === null,
      );
      if (meant === undefined) return;
      event.preventDefault();
      onAnswer(meant.answer);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  });

  const question = call?.question;
  const effect = call?.effect ?? read.value?.tool?.effect;
  const policy = read.value?.tool?.approval;
  return (
    <article>
      <header>
        <h1>{visible(question?.text ?? call?.tool ?? reason)}</h1>
        <p class="facts">
          <a href={linkTo({ name: 'session', id: sessionId })}>{visible(sessionId)}</a>
          {agent !== null && <span>{visible(item.path?.join(' › ') ?? agent)}</span>}
          {tenant !== null && <span>{visible(tenant)}</span>}
        </p>
      </header>
      {call !== null && question === undefined && (
        <>
          <p>{visible(reason)}</p>
          <Value value={call.args} />
        </>
      )}
      <dl class="facts-list">
        {question?.otherwise !== undefined && <Fact name="Default">{readable(question.otherwise)}</Fact>}
        {call?.needs !== undefined && <Fact name="Approvals">{needsInWords(call.needs)}</Fact>}
        {effect !== undefined && question === undefined && (
          <Fact name="Effect">{EFFECTS[effect] ?? effect}</Fact>
        )}
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
            {question !== undefined
              ? ', then nobody has answered'
              : policy !== undefined &&
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
      {read.value !== null && (gone || read.value.call.dispatches.length > 0) && (
        <CallLife call={read.value.call} />
      )}
      <Problem error={read.error} />
      {gone && (
        <p class="attention" role="status">
          This waits no longer: it was answered, has expired or has changed. The list shows what waits now.
        </p>
      )}
      {answer === null && !gone && (
        <>
          <div class="answers">
            {shown.map((each) => (
              <button
                key={each.answer}
                type="button"
                title={refusal(item, each.answer, you) ?? each.does}
                disabled={refusal(item, each.answer, you) !== null}
                onClick={() => onAnswer(each.answer)}
              >
                {labelOf(item, each.answer)} <kbd>{ANSWERS[each.answer]?.key}</kbd>
              </button>
            ))}
          </div>
          {[...refusals].map((reason) => (
            <p key={reason} class="hint">
              {reason}
            </p>
          ))}
          <dl class="does">
            {item.answers.map((each) => (
              <div key={each.answer}>
                <dt>{labelOf(item, each.answer)}</dt>
                <dd>
                  {each.does}
                  <CommandLine command={each.command} />
                </dd>
              </div>
            ))}
          </dl>
        </>
      )}
      {answer !== null && (
        <AnswerPanel
          key={answer}
          item={item}
          gone={gone}
          answer={answer}
          schema={answer === 'edit' ? read.value?.tool?.inputSchema : call?.question?.answer}
          reading={answer === 'edit' && read.value === null && read.error === null}
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
