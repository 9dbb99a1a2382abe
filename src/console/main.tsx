/** The console: a page for the people who decide. */
import { type JSX, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type ApiError, request, setToken, takeToken } from './api.ts';
import { asApiError, go, linkTo, useAddress, useRemembered } from './hooks.ts';
import { Inbox } from './inbox.tsx';
import { Problem } from './parts.tsx';
import { Session } from './session.tsx';
import { Sessions } from './sessions.tsx';
import { visible } from './text.ts';
import { type Caller, YouContext, youOf } from './you.ts';

const THEMES = ['system', 'light', 'dark'] as const;

function App(): JSX.Element {
  const { place, search } = useAddress();
  const [typed, setTyped] = useRemembered('perdure.by', '');
  const [caller, setCaller] = useState<Caller | null>(null);
  const [count, setCount] = useState<number | null>(null);
  const [refused, setRefused] = useState<ApiError | null>(null);

  const enter = (): void => {
    request<Caller>('GET', '/whoami').then(setCaller, (error: unknown) => setRefused(asApiError(error)));
  };
  useEffect(enter, []);
  const name = place.name === 'session' ? place.id : place.name === 'inbox' ? 'Inbox' : 'Sessions';
  const title = `${place.name === 'inbox' && count ? `(${count}) ` : ''}${name} · Perdure`;
  useEffect(() => {
    document.title = title;
  }, [title]);

  if (caller === null) {
    if (refused?.status === 401) return <Gate error={refused} onToken={enter} />;
    return (
      <main class="page">
        <Problem error={refused} />
      </main>
    );
  }
  const current = (name: string): 'page' | undefined => (place.name.startsWith(name) ? 'page' : undefined);
  return (
    <YouContext.Provider value={youOf(caller, typed)}>
      <header class="bar">
        <strong class="brand">Perdure</strong>
        <nav aria-label="Places">
          <a href={linkTo({ name: 'inbox' })} aria-current={current('inbox')}>
            Inbox{count !== null && count > 0 && <span class="count">{count}</span>}
          </a>
          <a href={linkTo({ name: 'sessions' })} aria-current={current('session')}>
            Sessions
          </a>
        </nav>
        <search class="search">
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const text = new FormData(event.currentTarget).get('id');
              if (typeof text === 'string' && text.trim() !== '') void open(text.trim());
            }}
          >
            <input
              name="id"
              type="search"
              placeholder="Session, by the beginning of its id"
              aria-label="Session, by the beginning of its id"
            />
          </form>
        </search>
        {caller.name === null ? (
          <label class="you">
            <span>You</span>
            <input
              value={typed}
              aria-label="Your name"
              placeholder="your name"
              maxLength={200}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </label>
        ) : (
          <span class="you" title={`May: ${caller.roles.join(', ')}`}>
            {visible(caller.name)}
          </span>
        )}
        <Theme />
      </header>
      {place.name === 'inbox' && <Inbox search={search} onCount={setCount} />}
      {place.name === 'sessions' && <Sessions search={search} />}
      {place.name === 'session' && <Session key={place.id} id={place.id} />}
    </YouContext.Provider>
  );
}

/** Opens the session with an id, or the only one whose id begins with it; otherwise lists all of those. */
async function open(text: string): Promise<void> {
  const prefix = new URLSearchParams({ prefix: text }).toString();
  const found = await request<{ items: { id: string }[] }>('GET', `/sessions?limit=2&${prefix}`).catch(
    () => null,
  );
  const only = found?.items.length === 1 ? found.items[0]?.id : undefined;
  const isId = found === null || found.items.some(({ id }) => id === text);
  const id = isId ? text : only;
  go(id === undefined ? `${linkTo({ name: 'sessions' })}?${prefix}` : linkTo({ name: 'session', id }));
}

/** Asks for the token of the server. */
function Gate({ error, onToken }: { error: ApiError; onToken: () => void }): JSX.Element {
  const [text, setText] = useState('');
  const [tried, setTried] = useState(false);
  return (
    <main class="page gate">
      <h1>Perdure</h1>
      <p>
        This server needs a token. <code>perdure serve</code> and <code>perdure dev</code> print a link that
        has it.
      </p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setToken(text.trim());
          setTried(true);
          onToken();
        }}
      >
        <label class="field">
          <span>Token</span>
          <input
            type="password"
            autocomplete="off"
            required
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        {tried && <Problem error={error} />}
        <button type="submit" class="primary">
          Open
        </button>
      </form>
      <p class="hint">It stays in this tab, and is forgotten when you close it.</p>
    </main>
  );
}

function Theme(): JSX.Element {
  const [theme, setTheme] = useRemembered('perdure.theme', 'system');
  useEffect(() => {
    document.documentElement.dataset['theme'] = theme;
  }, [theme]);
  return (
    <select
      class="theme"
      aria-label="Theme"
      value={theme}
      onChange={(event) => setTheme(event.currentTarget.value)}
    >
      {THEMES.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

takeToken();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
