/** A transcript as a conversation. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { ToolCall } from '../contract/calls.ts';
import type { Block, Message } from '../contract/messages.ts';
import { CallLife } from './call-life.tsx';
import { linkTo } from './hooks.ts';
import { Time, Value } from './parts.tsx';
import { readable, visible } from './text.ts';

/** The most characters of a text or a result that is shown before somebody asks for more. */
const BRIEF = 2_000;

const ROLES = { user: 'Person', assistant: 'Model', tool: 'Tool' } as const;

interface Calls {
  calls: ReadonlyMap<string, ToolCall>;
  /** The sessions of sub-agents, by the calls that have started them. */
  agents: ReadonlyMap<string, string>;
}

export function Conversation({
  messages,
  calls,
  agents,
}: { messages: readonly Message[] } & Calls): JSX.Element {
  // The card of a call shows its result.
  const shown = messages.filter(
    ({ blocks }) => !blocks.every((block) => block.kind === 'tool_result' && calls.has(block.call_id)),
  );
  return (
    <ol class="conversation">
      {shown.map((message) => {
        const { id, role, created_at, blocks, aside, report } = message;
        return (
          <li key={id} class={`${role}${aside === true ? ' aside' : ''}`}>
            <p class="who hint">
              <strong>{titleOf(message)}</strong>
              {report !== undefined && (
                <a href={linkTo({ name: 'session', id: report.session_id })}>session</a>
              )}
              {aside === true && <span>aside: nothing pending has changed</span>}
              {created_at !== undefined && <Time at={created_at} />}
            </p>
            {blocks.map((block, index) => (
              <BlockOf key={index} block={block} calls={calls} agents={agents} />
            ))}
          </li>
        );
      })}
    </ol>
  );
}

function titleOf({ role, summary, report }: Pick<Message, 'role' | 'summary' | 'report'>): string {
  if (report !== undefined) return visible(`Report of ${report.agent}`);
  return summary === undefined ? ROLES[role] : 'Summary of earlier messages';
}

function BlockOf({ block, calls, agents }: { block: Block } & Calls): JSX.Element | null {
  switch (block.kind) {
    case 'text':
      return <Long text={visible(block.text)} />;
    case 'reasoning':
      return block.text === '' ? null : (
        <details class="hint">
          <summary>Reasoning</summary>
          <Long text={visible(block.text)} />
        </details>
      );
    case 'tool_call': {
      const call = calls.get(block.id);
      return call === undefined ? (
        <Card name={block.name} args={block.args} />
      ) : (
        <CallCard call={call} agent={agents.get(block.id)} />
      );
    }
    case 'tool_result':
      return <Card name={block.name} args={block.content} failed={block.is_error} />;
    case 'file':
      return (
        <p class="hint">
          File: {visible(block.filename ?? block.url ?? '')} {visible(block.media_type)}
        </p>
      );
    case 'source':
      return (
        <p class="hint">
          Source: {visible(block.title ?? '')} {visible(block.url ?? block.filename ?? '')}
        </p>
      );
    default:
      return null;
  }
}

/** A text of the model or a tool, cut until somebody asks for all of it. */
function Long({ text }: { text: string }): JSX.Element {
  const [whole, setWhole] = useState(false);
  const isCut = !whole && text.length > BRIEF;
  return (
    <div class="text">
      {isCut ? text.slice(0, BRIEF) : text}
      {isCut && (
        <button type="button" class="plain" onClick={() => setWhole(true)}>
          … {(text.length - BRIEF).toLocaleString('en')} more characters
        </button>
      )}
    </div>
  );
}

function Card({
  name,
  args,
  failed = false,
}: {
  name: string;
  args: unknown;
  failed?: boolean;
}): JSX.Element {
  return (
    <section class="card" aria-label={`Call of ${visible(name)}`}>
      <p class="line">
        <strong>{visible(name)}</strong> {failed && <span class="attention">failed</span>}
      </p>
      <Value value={args} />
    </section>
  );
}

/** A call: its arguments, its life, and its result. */
function CallCard({ call, agent }: { call: ToolCall; agent: string | undefined }): JSX.Element {
  const { id, name, args, effect, status, result, compensates } = call;
  const needsPerson = ['approval', 'unknown', 'stuck'].includes(status.kind);
  return (
    <section class="card" id={id} aria-label={`Call ${visible(id)} of ${visible(name)}`}>
      <p class="line">
        <strong>{visible(name)}</strong>
        <span class="what hint">
          {visible(id)} · {compensates === undefined ? effect : `undoes ${visible(compensates.callId)}`}
        </span>
        <span class={needsPerson || status.kind === 'failed' ? 'attention' : 'hint'}>{status.kind}</span>
      </p>
      <Value value={args} />
      {agent !== undefined && (
        <p class="hint">
          Runs in <a href={linkTo({ name: 'session', id: agent })}>{visible(agent)}</a>
        </p>
      )}
      <CallLife call={call} />
      {result !== null && (
        <details open={result.isError}>
          <summary>{result.isError ? 'Failed' : 'Result'}</summary>
          <Long text={readable(result.content)} />
        </details>
      )}
    </section>
  );
}
