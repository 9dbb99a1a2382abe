/** The stage of one run: sessions, workers that are held at a step, wires, and the people who help. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Session, SessionView, StartOptions } from 'perdure';
import {
  createHarness,
  type Harness,
  type HarnessProcessOptions,
  openWire,
  type Wire,
} from 'perdure/testing';
import { Crew } from './crew.ts';
import { withKeys } from './keys.ts';
import type { Lane } from './lane.ts';
import { eventsOf } from './lost.ts';
import { look, PATIENCE_MS, retried } from './patience.ts';
import { help, helpBelow, type PersonRecord } from './people.ts';
import { type Heard, scriptOf } from './script.ts';
import { breakpointOf, envOf, visitsOf } from './steps.ts';
import {
  BACKGROUND,
  callerBelow,
  MORE,
  ROLLING,
  randomOf,
  type Step,
  type Story,
  type Task,
  type ToolKind,
  TREE,
  taskText,
} from './story.ts';
import { isQuiet } from './trees.ts';

const AGENTS = new URL('./agents.ts', import.meta.url);

/** How often a server without room is asked until it refuses, and how long each request may take, in milliseconds. */
const REFUSAL_TRIES = 20;
const REFUSAL_MS = 5_000;

/** A session of a run, and what the lab knows about it from outside. */
export interface Actor {
  readonly task: Task;
  readonly session: Session;
  /** When the fault struck it, with the evidence. `null`: not yet. */
  landed: { readonly evidence: string; readonly at: number } | null;
  /** When it was at rest again, before the point's work after the rest. */
  wentOnAt: number | null;
  /** When it last came to rest. `null`: it is not at rest. */
  restedAt: number | null;
  /** The last view that a worker gave. */
  view: SessionView | null;
  /** Messages that it has acknowledged, by id. */
  readonly acknowledged: string[];
  readonly people: PersonRecord[];
}

/** Steps at which each session has its own call. At other steps, sessions that share an effect share the call. */
const OWN: readonly Step[] = ['attached', 'between-turns', 'approval'];
/** Steps of a model call. */
const OF_MODEL: readonly Step[] = ['model-asked', 'asking', 'model-answered'];
/** Steps of a tree at which all kinds share one breakpoint. */
const OF_TREE = [...TREE, ...BACKGROUND].filter(
  (step) => step !== 'child-running' && step !== 'background-running',
);

export class Stage {
  readonly story: Story;
  readonly lane: Lane;
  readonly harness: Harness;
  readonly actors: Actor[] = [];
  readonly random: () => number;
  readonly #name: string;
  readonly #crews: { readonly crew: Crew; readonly counts: boolean }[] = [];
  readonly #wires: Wire[] = [];
  readonly #sending: Promise<void>[] = [];
  readonly #releases: NodeJS.Timeout[] = [];
  readonly #closing: (() => Promise<void>)[] = [];
  /** By digest of a request: the session that sent it. */
  readonly requestsOf: ReadonlyMap<string, Heard> = new Map();

  private constructor(name: string, story: Story, lane: Lane, harness: Harness, heard: Map<string, Heard>) {
    this.#name = name;
    this.story = story;
    this.lane = lane;
    this.harness = harness;
    this.requestsOf = heard;
    this.random = randomOf(story.seed);
  }

  /** @param key - the id of the key that its client encrypts with */
  static async open(name: string, story: Story, lane: Lane, key?: string): Promise<Stage> {
    const heard = new Map<string, Heard>();
    const harness = await createHarness({
      module: AGENTS,
      server: lane.server,
      script: scriptOf(heard),
      recordFile: lane.file(`${name}.jsonl`),
      env: { PAYMENTS_URL: `http://${lane.payments}` },
      timeoutMs: PATIENCE_MS,
    });
    return new Stage(name, story, lane, key === undefined ? harness : withKeys(harness, key), heard);
  }

  get recordFile(): string {
    return this.lane.file(`${this.#name}.jsonl`);
  }

  /**
   * Starts worker processes that are held when sessions reach one of the given steps. Starts as many as the story has,
   * minus those that run already, but at least one.
   */
  async startWorker(
    options: HarnessProcessOptions & { readonly holdAt?: readonly Step[] } = {},
  ): Promise<Crew> {
    const { holdAt = [], breakAt = [], ...rest } = options;
    const env = { ...envOf(this.story), ...rest.env };
    const points = holdAt.flatMap((step) => this.story.kinds.map((kind) => breakpointOf(step, kind)));
    const all = [...new Set([...breakAt, ...points.filter((point) => point !== null)])];
    const there = this.#crews.reduce((sum, { crew, counts }) => sum + (counts ? crew.pids.length : 0), 0);
    const members = await Promise.all(
      Array.from({ length: Math.max(1, this.story.workers - there) }, () =>
        this.harness.startWorkerProcess({ ...rest, env, breakAt: all }),
      ),
    );
    const crew = new Crew(members, all);
    // Workers behind a wire do not count: they are cut off sooner or later.
    this.#crews.push({ crew, counts: options.connection === undefined });
    return crew;
  }

  /** Starts the sessions. The first message of each is its task. */
  async begin(
    options: {
      agent?: 'careful' | 'connected' | 'director' | 'hasty' | 'late' | 'overseer' | 'patient' | 'repentant';
      mode?: Task['mode'];
      cutReply?: number;
      /** Sessions make three calls at least, and summarize older messages before the last. */
      compacts?: true;
      /** Numbers of the sessions that share a global effect. */
      globally?: readonly number[];
      /** The pool of money that they share. */
      pool?: string;
      /** Caps of each session. */
      budget?: StartOptions['budget'];
    } = {},
  ): Promise<void> {
    const {
      agent = 'careful',
      mode = 'plain',
      cutReply,
      compacts,
      pool,
      budget,
      globally = [1, 2],
    } = options;
    for (const kind of this.story.kinds) {
      for (const n of kind === 'global' ? globally : [1]) {
        const id = `${this.#name}-${kind}-${n}`;
        const task: Task = {
          session: id,
          kind,
          // All of them ask for the one effect.
          tag: `${this.#name}-${kind}`,
          turns: compacts === true ? Math.max(3, this.story.turns) : this.story.turns,
          mode,
          ...(compacts === undefined ? {} : { compacts }),
          ...(agent === 'director' ? { below: 2 } : {}),
          ...(agent === 'overseer' ? { below: 2, background: callerBelow(this.story) } : {}),
          ...(cutReply === undefined ? {} : { cutReply }),
        };
        const message = { id: 'first', text: taskText(task) };
        const session = await this.harness.startSession(agent, {
          id,
          message,
          ...(pool && { pool }),
          ...(budget && { budget }),
        });
        this.actors.push({
          task,
          session,
          landed: null,
          wentOnAt: null,
          restedAt: null,
          view: null,
          acknowledged: ['first'],
          people: [],
        });
      }
    }
  }

  /** Resolves when every session that reaches the step holds a worker there, in the turn that is struck. */
  async held(worker: Crew, step: Step = this.story.step, turns: number = this.story.strike): Promise<void> {
    const visits = visitsOf(step, turns);
    for (let visit = 1; ; visit++) {
      await this.#visits(worker, step);
      if (visit === visits) return;
      this.release(worker, step);
    }
  }

  async #visits(worker: Crew, step: Step): Promise<void> {
    if ([...OF_MODEL, ...ROLLING, ...OF_TREE].includes(step)) {
      const point = breakpointOf(step, 'read') ?? '';
      for (const _ of this.actors) await worker.reached(point);
      return;
    }
    for (const kind of this.story.kinds) {
      const point = breakpointOf(step, kind);
      if (point === null) continue;
      const own = OWN.includes(step) && kind === 'global' ? 2 : 1;
      for (let n = 0; n < own; n++) await worker.reached(point);
    }
  }

  /** Releases everything that is held at a step. */
  release(worker: Crew, step: Step = this.story.step): void {
    for (const kind of this.story.kinds) {
      const point = breakpointOf(step, kind);
      if (point !== null) worker.release(point);
    }
  }

  /** Releases everything that is held, at one breakpoint or at all, and never holds the worker there again. */
  letGo(worker: Crew, point?: string): void {
    worker.release(point);
    this.#releases.push(setInterval(() => worker.release(point), 20));
  }

  /**
   * Records that the fault has happened, with evidence, and lets people write. `at` is the time of the fault in
   * milliseconds since 1970, for all sessions or by session. The recovery time is measured from there.
   */
  strike(evidence: string, at: number | ReadonlyMap<string | undefined, number> = Date.now()): void {
    for (const actor of this.actors) {
      const since = typeof at === 'number' ? at : at.get(actor.task.session);
      if (since === undefined || Number.isNaN(since)) throw new Error(`${actor.task.session}: struck when?`);
      actor.landed = { evidence, at: since };
    }
    if (this.story.messages) this.say('during');
  }

  /** People write to every session. They repeat the message under the same id until it is acknowledged. */
  say(id: string, text = `A word ${id}.`): void {
    for (const { session, acknowledged } of this.actors) {
      const sent = retried(() => session.send({ id, text })).then(() => void acknowledged.push(id));
      // `sent()` reports a refusal. Until then, nobody handles it.
      sent.catch(() => {});
      this.#sending.push(sent);
    }
  }

  /** People approve, from the roots of the trees, the calls that wait below. */
  approveBelow(): void {
    for (const actor of this.actors) {
      const sent = helpBelow(this, actor);
      sent.catch(() => {});
      this.#sending.push(sent);
    }
  }

  /** People ask every session for one call more. */
  more(): void {
    this.say(MORE, `${MORE}, please`);
  }

  /**
   * Waits until each session is at rest. People do what only people can do. Gives up on sessions that take too long.
   */
  async rest(patienceMs: number = PATIENCE_MS): Promise<void> {
    const deadline = Date.now() + patienceMs;
    await Promise.all(
      this.actors.map(async (actor) => {
        actor.restedAt = null;
        while (Date.now() < deadline) {
          actor.view = (await look(actor.session)) ?? actor.view;
          const { phase, queued = 0 } = actor.view ?? {};
          // A session closes only if somebody has cancelled it.
          const rests = phase === 'closed' || (phase === 'idle' && queued === 0);
          if (rests && (actor.task.background === undefined || (await isQuiet(this, actor.session)))) {
            actor.restedAt = Date.now();
            return;
          }
          if (actor.view !== null) await help(this, actor, actor.view);
          await sleep(40);
        }
      }),
    );
  }

  /** Waits for a condition on every session that a fault may strike. */
  async until(
    condition: (view: SessionView, actor: Actor) => boolean | Promise<boolean>,
    { helped = false }: { helped?: boolean } = {},
  ): Promise<void> {
    const deadline = Date.now() + PATIENCE_MS;
    for (const actor of this.actors) {
      for (;;) {
        const view = await look(actor.session);
        if (view !== undefined && (await condition(view, actor))) break;
        if (helped && view !== undefined) await help(this, actor, view);
        if (Date.now() > deadline) throw new Error(`${actor.task.session}: ${JSON.stringify(view)}`);
        await sleep(30);
      }
    }
  }

  /** Resolves when all messages of people are acknowledged. */
  async sent(): Promise<void> {
    await Promise.all(this.#sending);
  }

  /** How many effects of one turn go to the service. */
  effects(): number {
    return this.story.kinds.filter((kind) => kind !== 'read').length;
  }

  /** The ledger's rows of this run, without those of one kind. */
  rows({ but }: { but?: ToolKind } = {}): readonly string[] {
    const tags = this.actors.filter(({ task }) => task.kind !== but).map(({ task }) => `${task.tag}#`);
    const own = this.lane.ledger().filter(({ args }) => tags.some((tag) => args.reason.startsWith(tag)));
    return own.map(({ id }) => id);
  }

  /**
   * The session that executes a session's call: the session itself, or that of a global effect. `undefined` if there is
   * none yet.
   */
  async ownerOf(session: Session): Promise<Session | undefined> {
    const [call] = (await session.calls()).items;
    if (call?.scope !== 'global') return session;
    const effect = this.harness.sessions.get(`effect:${call.idempotencyKey}`);
    return (await look(effect)) === undefined ? undefined : effect;
  }

  /** How many signals a session's history has. */
  async signals(workflowId: string): Promise<number> {
    let count = 0;
    for await (const event of eventsOf(this.harness.client, workflowId)) {
      if (event.workflowExecutionSignaledEventAttributes) count += 1;
    }
    return count;
  }

  /** Starts workflows until the server refuses one, and returns why. Ends the accepted workflows. */
  async refusedStart(): Promise<string> {
    const { client, taskQueue } = this.harness;
    for (let n = 1; n <= REFUSAL_TRIES; n++) {
      const workflowId = `${this.#name}-refused-${n}`;
      try {
        const start = { workflowId, taskQueue: `nobody-${taskQueue}`, workflowRunTimeout: '1m' } as const;
        await client.withDeadline(Date.now() + REFUSAL_MS, () => client.workflow.start('nothing', start));
      } catch (error) {
        return error instanceof Error ? `${error.message} (${String(error.cause)})` : String(error);
      }
    }
    throw new Error(`the server has started ${REFUSAL_TRIES} workflows`);
  }

  /** Registers work for when the stage closes. */
  onClose(end: () => Promise<void>): void {
    this.#closing.push(end);
  }

  /** Opens a wire to a server; it is closed with the stage. */
  async wire(target: string): Promise<Wire> {
    const wire = await openWire(target);
    this.#wires.push(wire);
    return wire;
  }

  /** Ends the sessions and all that was started. */
  async close(): Promise<void> {
    await this.lane.control.disarm();
    await this.lane.control.release();
    for (const timer of this.#releases) clearInterval(timer);
    for (const { crew } of this.#crews) await crew.crash();
    for (const end of this.#closing) await end();
    for (const wire of this.#wires) await wire.close();
    for (const { session } of this.actors) {
      await this.harness.client.workflow
        .getHandle(session.id)
        .terminate('the run is over')
        .catch(() => {});
    }
    await this.harness.stop();
  }
}
