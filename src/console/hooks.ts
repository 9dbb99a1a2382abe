/** State that several places share: the address, the time, what was read. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, request } from './api.ts';

const BASE = '/console';

/** A place of the console. `session`: whose items the inbox shows first. */
export type Place =
  | { name: 'inbox'; session?: string }
  | { name: 'sessions' }
  | { name: 'session'; id: string };

/** The link of a place. */
export function linkTo(place: Place): string {
  if (place.name === 'session') return `${BASE}/sessions/${encodeURIComponent(place.id)}`;
  if (place.name === 'sessions') return `${BASE}/sessions`;
  return place.session === undefined ? BASE : `${BASE}?session=${encodeURIComponent(place.session)}`;
}

function placeOf(pathname: string): Place {
  const [first, id] = pathname.slice(BASE.length).split('/').filter(Boolean);
  if (first !== 'sessions') return { name: 'inbox' };
  if (id === undefined) return { name: 'sessions' };
  try {
    return { name: 'session', id: decodeURIComponent(id) };
  } catch {
    return { name: 'sessions' };
  }
}

/** Opens an address of the console without loading the page again. */
export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, '', address);
  else history.pushState(null, '', address);
  dispatchEvent(new PopStateEvent('popstate'));
}

const here = (): string => location.pathname + location.search;

/** Where the page is. Links within the console do not load it again. */
export function useAddress(): { place: Place; search: string } {
  const [address, setAddress] = useState(here);
  useEffect(() => {
    const moved = (): void => setAddress(here());
    const clicked = (event: MouseEvent): void => {
      const link = event.target instanceof Element ? event.target.closest('a') : null;
      const plain =
        event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
      if (link === null || !plain || !link.pathname.startsWith(BASE) || link.origin !== location.origin)
        return;
      event.preventDefault();
      go(link.pathname + link.search);
    };
    addEventListener('popstate', moved);
    document.addEventListener('click', clicked);
    return () => {
      removeEventListener('popstate', moved);
      document.removeEventListener('click', clicked);
    };
  }, []);
  const [pathname = '', search = ''] = address.split('?');
  return { place: placeOf(pathname), search };
}

const CLOCK_MS = 5_000;
const clocks = new Set<(now: number) => void>();
setInterval(() => {
  const now = Date.now();
  for (const show of clocks) show(now);
}, CLOCK_MS);

/** The current time, updated every few seconds. All of the page shows the same time. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    clocks.add(setNow);
    return () => void clocks.delete(setNow);
  }, []);
  return now;
}

const isSeen = (): boolean => document.visibilityState === 'visible';

/** Whether the page is seen. A tab behind another one is not. */
export function useSeen(): boolean {
  const [seen, setSeen] = useState(isSeen);
  useEffect(() => {
    const look = (): void => setSeen(isSeen());
    look();
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  return seen;
}

export interface Read<T> {
  value: T | null;
  error: ApiError | null;
  /** Reads again now. */
  again: () => Promise<void>;
}

/** Reads a path of the API, and again every few seconds while the page is visible. Without a path it reads nothing. */
export function useRead<T>(path: string | null, everyMs?: number): Read<T> {
  const [state, setState] = useState<{ value: T | null; error: ApiError | null }>({
    value: null,
    error: null,
  });
  const latest = useRef(0);
  const again = useCallback(async () => {
    if (path === null) return;
    const mine = ++latest.current;
    try {
      const value = await request<T>('GET', path);
      if (mine === latest.current) setState({ value, error: null });
    } catch (error) {
      if (mine === latest.current) setState(({ value }) => ({ value, error: asApiError(error) }));
    }
  }, [path]);
  useEffect(() => {
    void again();
    if (everyMs === undefined) return undefined;
    const look = (): void => {
      if (isSeen()) void again();
    };
    const timer = setInterval(look, everyMs);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, [again, everyMs]);
  return { ...state, again };
}

export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'INTERNAL', String(error));
}

/** A text that this browser remembers. */
export function useRemembered(key: string, initial: string): [string, (value: string) => void] {
  const [value, setValue] = useState(() => localStorage.getItem(key) ?? initial);
  return [
    value,
    (next) => {
      localStorage.setItem(key, next);
      setValue(next);
    },
  ];
}
