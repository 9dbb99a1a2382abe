/** The page: plain `useChat`. */
import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai7';
import { type ReactNode, StrictMode, type SubmitEvent, useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Part } from './part.tsx';

/** The chat is named in the address, so that a reload and a link find it. */
const chatId = location.hash.slice(1) || crypto.randomUUID();
history.replaceState(null, '', `#${chatId}`);
addEventListener('hashchange', () => location.reload());

/** Version 7 of the AI SDK can take back what a dead worker had written. */
const transport = new DefaultChatTransport({ headers: { 'x-ai-sdk': '7' } });

async function load(): Promise<UIMessage[]> {
  const response = await fetch(`/api/chat/${chatId}`);
  if (!response.ok) throw new Error(await response.text());
  const { messages } = (await response.json()) as { messages: UIMessage[] };
  return messages;
}

function Chat({ loaded }: { loaded: UIMessage[] }): ReactNode {
  const { messages, setMessages, sendMessage, addToolApprovalResponse, regenerate, stop, status, error } =
    useChat({
      id: chatId,
      messages: loaded,
      resume: true,
      transport,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
  const [text, setText] = useState('');
  const end = useRef<HTMLDivElement>(null);
  const isBusy = status === 'submitted' || status === 'streaming';
  // The session would take a message only after the call that waits.
  const isAsked = messages.some(({ parts }) =>
    parts.some((part) => isToolUIPart(part) && part.state === 'approval-requested'),
  );
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'end' });
  });
  useEffect(() => {
    // Somebody else may have decided while this page was hidden.
    const look = (): void => {
      if (!isBusy) void load().then(setMessages);
    };
    addEventListener('focus', look);
    return () => removeEventListener('focus', look);
  }, [isBusy, setMessages]);
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    if (text.trim() === '' || isBusy || isAsked) return;
    void sendMessage({ text });
    setText('');
  };
  const halt = async (): Promise<void> => {
    await fetch(`/api/chat/${chatId}/stop`, { method: 'POST' });
    await stop();
  };
  return (
    <>
      <main aria-live="polite">
        {messages.length === 0 && (
          <p className="empty">
            Ask about teapots, or say <em>Refund order 1001</em>. Then kill the worker, or reload the page.
          </p>
        )}
        {messages.map(({ id, role, parts }) => (
          <article key={id} className={role} aria-label={role}>
            {parts.map((part, i) => (
              // Parts are only added at the end.
              // biome-ignore lint/suspicious/noArrayIndexKey: parts have no id
              <Part key={i} part={part} decide={(answer) => void addToolApprovalResponse(answer)} />
            ))}
          </article>
        ))}
        {status === 'submitted' && <p className="busy">…</p>}
        {error && (
          <p className="error" role="alert">
            {error.message}{' '}
            <button type="button" onClick={() => location.reload()}>
              Load again
            </button>
          </p>
        )}
        <div ref={end} />
      </main>
      <form onSubmit={send}>
        <input
          aria-label="Message"
          placeholder={isAsked ? 'A call waits for your decision' : 'Message'}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {isBusy ? (
          <button type="button" onClick={() => void halt()}>
            Stop
          </button>
        ) : (
          <button type="submit" disabled={isAsked}>
            Send
          </button>
        )}
        {!isBusy && messages.at(-1)?.role === 'assistant' && (
          <button type="button" className="quiet" onClick={() => void regenerate()}>
            Again
          </button>
        )}
      </form>
    </>
  );
}

function App(): ReactNode {
  const [loaded, setLoaded] = useState<UIMessage[] | string | null>(null);
  useEffect(() => void load().then(setLoaded, (error: unknown) => setLoaded(String(error))), []);
  return (
    <>
      <header>
        <h1>Teapots</h1>
        <button type="button" className="quiet" onClick={() => void fetch('/crash', { method: 'POST' })}>
          Kill the worker
        </button>
        <button type="button" className="quiet" onClick={() => location.assign(`#${crypto.randomUUID()}`)}>
          New chat
        </button>
      </header>
      {typeof loaded === 'string' && (
        <p className="error" role="alert">
          {loaded}
        </p>
      )}
      {Array.isArray(loaded) && <Chat loaded={loaded} />}
    </>
  );
}

const root = document.getElementById('root');
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
