/** Who uses the page, and what the token of this tab may do. */
import { type Context, createContext } from 'preact';
import { useContext } from 'preact/hooks';

/** A role of the API. */
export type Role = 'read' | 'talk' | 'decide' | 'operate';

/** Whose token this is. `name` is `null` for a token that several people share. */
export interface Caller {
  name: string | null;
  roles: readonly string[];
  tenant: string | null;
}

/** The person at the page. */
export interface You {
  /** Empty when nobody has given a name. */
  name: string;
  /** Whether the server knows the name from the token, and records it itself. */
  verified: boolean;
  /** What a request says about the name. Empty when the server records the name itself. */
  signature: { by?: string };
  /** Why the token lacks a role, or `null`. The server decides: this only saves a vain request. */
  lacks: (role: Role) => string | null;
}

export const YouContext: Context<You> = createContext(youOf(null, ''));

export function useYou(): You {
  return useContext(YouContext);
}

/** @param typed - the name that the person has typed, for a token that several people share. */
export function youOf(caller: Caller | null, typed: string): You {
  const verified = caller !== null && caller.name !== null;
  const name = caller?.name ?? typed;
  const roles = caller?.roles ?? [];
  return {
    name,
    verified,
    signature: verified || name === '' ? {} : { by: name },
    lacks: (role) =>
      roles.includes(role) ? null : `Needs the role ${role}. Your token has: ${roles.join(', ') || 'none'}.`,
  };
}
