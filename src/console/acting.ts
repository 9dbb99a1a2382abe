/** What a person does: each action is sent once. */
import { useMemo, useRef, useState } from 'preact/hooks';
import type { ApiError } from './api.ts';
import { asApiError } from './hooks.ts';

export interface Act {
  /** Sends something. While that is under way it sends nothing else: a second click is not a second request. */
  act: (send: () => Promise<void>) => Promise<void>;
  busy: boolean;
  /** Why the last one failed. */
  error: ApiError | null;
}

export function useAct(): Act {
  const [state, setState] = useState<Omit<Act, 'act'>>({ busy: false, error: null });
  // A second event can come before the page is drawn anew.
  const underWay = useRef(false);
  const act: Act['act'] = async (send) => {
    if (underWay.current) return;
    underWay.current = true;
    setState({ busy: true, error: null });
    const error = await send().then(() => null, asApiError);
    underWay.current = false;
    setState({ busy: false, error });
  };
  return { ...state, act };
}

/** An id for what a draft makes. A draft that is sent again, because no answer came, has the same id and makes nothing twice. */
export function useDraftId(draft: string): string {
  // biome-ignore lint/correctness/useExhaustiveDependencies: another draft has another id
  return useMemo(newId, [draft]);
}

/** Random digits. `crypto.randomUUID` is missing on pages without TLS. */
function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
