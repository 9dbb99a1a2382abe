/** A part of a message. React shows text as text: nothing in it runs. */
import { getToolName, isToolUIPart, type UIMessage } from 'ai7';
import { type ReactNode, useState } from 'react';

export interface PartProps {
  part: UIMessage['parts'][number];
  decide: (answer: { id: string; approved: boolean; reason?: string }) => void;
}

export function Part({ part, decide }: PartProps): ReactNode {
  if (part.type === 'text') return <p className="text">{part.text}</p>;
  if (part.type === 'reasoning')
    return (
      <details>
        <summary>Thoughts</summary>
        <p>{part.text}</p>
      </details>
    );
  if (isToolUIPart(part)) return <Tool part={part} decide={decide} />;
  if (part.type.startsWith('data-perdure-') && 'data' in part) return <Notice data={part.data} />;
  return null;
}

const STATES: Readonly<Record<string, string>> = {
  'input-streaming': 'is being asked for',
  'input-available': 'runs',
  'approval-requested': 'waits for you',
  'approval-responded': 'is decided',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'rejected',
};

function Tool({
  part,
  decide,
}: PartProps & { part: Extract<PartProps['part'], { toolCallId: string }> }): ReactNode {
  const [reason, setReason] = useState('');
  const name = getToolName(part);
  const answer = (approved: boolean): void => {
    if (part.approval !== undefined)
      decide({ id: part.approval.id, approved, ...(reason !== '' && { reason }) });
  };
  return (
    <section className={`tool ${part.state}`} aria-label={`Tool ${name}`}>
      <h2>
        {name} <small>{STATES[part.state] ?? part.state}</small>
      </h2>
      <pre>{JSON.stringify(part.input, null, 1)}</pre>
      {part.state === 'approval-requested' && (
        <div className="decision">
          <button type="button" onClick={() => answer(true)}>
            Approve
          </button>
          <button type="button" className="quiet" onClick={() => answer(false)}>
            Reject
          </button>
          <input
            aria-label="Reason"
            placeholder="Reason, if you reject"
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </div>
      )}
      {part.state === 'output-available' && <pre>{JSON.stringify(part.output, null, 1)}</pre>}
      {part.state === 'output-error' && <p className="error">{part.errorText}</p>}
    </section>
  );
}

/** What the session waits for. */
function Notice({ data }: { data: unknown }): ReactNode {
  if (typeof data !== 'object' || data === null) return null;
  const { message, reason } = data as { message?: string; reason?: string };
  return <p className="notice">{message ?? reason}</p>;
}
