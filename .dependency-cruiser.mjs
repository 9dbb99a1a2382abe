// Who may import whom. CONTRIBUTING.md shows the same table to people, and test/structure holds the two
// against each other. `scripts/rooms.mjs` runs this with a floor on what was seen; run that, not the bare CLI.

/**
 * The rooms of `src/`: which rooms and which packages each may import besides itself. A package is written as a
 * specifier (`@temporalio/*` is a scope), `node:` stands for Node's own modules and `*` for any dependency.
 *
 * @type {Record<string, { rooms: string[], packages: string[] }>}
 */
export const ROOMS = {
  contract: { rooms: [], packages: ['zod', '@noble/hashes', 'canonicalize'] },
  session: { rooms: ['contract'], packages: [] },
  thread: { rooms: ['contract'], packages: [] },
  pool: { rooms: ['contract'], packages: [] },
  rates: { rooms: ['contract'], packages: [] },
  workflows: {
    rooms: ['contract', 'session', 'thread', 'pool', 'rates'],
    packages: ['@temporalio/workflow', '@temporalio/common'],
  },
  temporal: {
    rooms: ['contract'],
    packages: ['@temporalio/client', '@temporalio/common', '@temporalio/proto', 'node:'],
  },
  encryption: {
    rooms: ['contract', 'temporal'],
    packages: ['@temporalio/common', '@temporalio/proto', 'node:'],
  },
  live: {
    rooms: ['contract'],
    packages: ['redis', 'node:'],
  },
  history: {
    rooms: ['contract', 'session', 'temporal'],
    packages: ['@temporalio/client', '@temporalio/common', '@temporalio/proto', 'node:'],
  },
  postgres: { rooms: ['contract'], packages: ['pg'] },
  values: {
    rooms: ['contract', 'temporal', 'postgres'],
    packages: ['@temporalio/client', '@temporalio/proto', '@aws-sdk/client-s3', 'node:'],
  },
  agent: {
    rooms: ['contract', 'temporal'],
    packages: ['@temporalio/common', 'ai', '@ai-sdk/provider', '@ai-sdk/provider-utils', 'zod', 'node:'],
  },
  mcp: { rooms: ['contract', 'agent'], packages: ['@modelcontextprotocol/client', 'ai'] },
  telemetry: { rooms: ['contract'], packages: ['@opentelemetry/api', 'node:'] },
  webhooks: { rooms: ['contract'], packages: ['@temporalio/activity', '@temporalio/common', 'node:'] },
  activities: {
    rooms: ['contract', 'agent', 'temporal', 'history', 'telemetry', 'values', 'webhooks'],
    packages: [
      '@temporalio/activity',
      '@temporalio/client',
      '@temporalio/common',
      '@temporalio/proto',
      'ai',
      '@ai-sdk/*',
      'lru-cache',
      'zod',
      'node:',
    ],
  },
  checkpoints: {
    rooms: ['contract', 'session', 'temporal', 'history', 'values'],
    packages: ['@temporalio/client', '@temporalio/proto', 'lru-cache', 'node:'],
  },
  client: {
    rooms: ['contract', 'session', 'temporal', 'history', 'values', 'live'],
    packages: ['@temporalio/client', '@temporalio/common', 'node:'],
  },
  saver: {
    rooms: ['contract', 'session', 'thread', 'temporal', 'checkpoints', 'client'],
    packages: [
      '@temporalio/client',
      '@temporalio/common',
      '@temporalio/proto',
      '@langchain/*',
      'libsql',
      'lru-cache',
      'zod',
      'node:',
    ],
  },
  archive: {
    rooms: [
      'contract',
      'session',
      'thread',
      'temporal',
      'postgres',
      'history',
      'checkpoints',
      'client',
      'saver',
      'worker',
    ],
    packages: [
      '@temporalio/activity',
      '@temporalio/client',
      '@temporalio/common',
      '@temporalio/proto',
      '@temporalio/worker',
      'node:',
    ],
  },
  worker: {
    rooms: ['contract', 'temporal', 'activities', 'agent', 'telemetry', 'webhooks'],
    packages: ['@temporalio/*', 'ai', '@ai-sdk/*', 'zod', 'node:'],
  },
  server: {
    rooms: ['contract'],
    packages: ['@temporalio/client', '@temporalio/envconfig', 'node:'],
  },
  http: {
    rooms: ['contract', 'session', 'thread', 'temporal', 'history', 'checkpoints', 'client', 'saver'],
    packages: ['hono', '@hono/node-server', 'jose', '@temporalio/client', 'zod', 'node:'],
  },
  chat: {
    rooms: ['contract', 'session', 'client', 'http'],
    packages: ['ai', 'node:'],
  },
  console: { rooms: ['contract', 'session', 'checkpoints'], packages: ['preact'] },
  testing: {
    rooms: [
      'contract',
      'session',
      'temporal',
      'history',
      'checkpoints',
      'agent',
      'activities',
      'client',
      'saver',
      'worker',
      'server',
    ],
    packages: ['*'],
  },
  cli: {
    rooms: [
      'contract',
      'session',
      'temporal',
      'encryption',
      'history',
      'checkpoints',
      'agent',
      'activities',
      'postgres',
      'values',
      'webhooks',
      'live',
      'client',
      'saver',
      'archive',
      'worker',
      'server',
      'http',
    ],
    packages: ['*'],
  },
};

/** The rooms that the main door, `src/index.ts`, may show. */
export const DOOR_ROOMS = [
  'contract',
  'agent',
  'checkpoints',
  'client',
  'live',
  'saver',
  'values',
  'webhooks',
  'worker',
];

/** @param {string[]} packages */
const packagePaths = (packages) =>
  packages
    .filter((name) => name !== 'node:')
    .map((name) => (name === '*' ? 'node_modules/' : `node_modules/${name.replace(/\/\*$/, '')}/`));

/**
 * @import { IRegularForbiddenRuleType } from 'dependency-cruiser'
 * @param {string} name
 * @param {string} comment
 * @param {IRegularForbiddenRuleType['from']} from
 * @param {IRegularForbiddenRuleType['to']} to
 * @returns {IRegularForbiddenRuleType}
 */
const rule = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

const known = Object.keys(ROOMS).join('|');

export const forbidden = [
  ...Object.entries(ROOMS).flatMap(([room, { rooms, packages }]) => {
    const from = { path: `^src/${room}/` };
    const allowed = packagePaths(packages);
    const rules = [
      rule(`${room}-rooms`, `${room} may import ${rooms.join(', ') || 'no other room'}`, from, {
        path: '^(src|test|examples|bench|scripts)/',
        pathNot: `^src/(${[room, ...rooms].join('|')})/`,
      }),
      rule(`${room}-packages`, `${room} may import ${packages.join(', ') || 'no package'}`, from, {
        path: 'node_modules/',
        ...(allowed.length > 0 ? { pathNot: allowed } : {}),
      }),
    ];
    if (!packages.includes('node:') && !packages.includes('*')) {
      rules.push(rule(`${room}-node`, `${room} runs where Node is not`, from, { dependencyTypes: ['core'] }));
    }
    return rules;
  }),
  rule(
    'main-door',
    `src/index.ts shows ${DOOR_ROOMS.join(', ')}`,
    { path: '^src/index\\.ts$' },
    { pathNot: `^src/(${DOOR_ROOMS.join('|')})/` },
  ),
  rule(
    'one-front-door',
    'a file at the top of src belongs in a room; only the door itself lives there',
    {},
    { path: '^src/', pathNot: [`^src/(${known})/`, '^src/index\\.ts$'] },
  ),
  rule(
    'sdk-internals',
    "the SDK's inner modules are imported by its cupboards alone: temporal/sdk-*.ts and workflows/sdk-internals.ts",
    {
      path: '^src/',
      pathNot: '^src/(temporal/sdk-[a-z]+|(worker|workflows)/sdk-internals)\\.ts$',
    },
    { path: 'node_modules/@temporalio/[a-z-]+/lib/', pathNot: '/lib/index\\.(js|d\\.ts)$' },
  ),
  rule(
    'no-cycle',
    'a cycle of values has no order to load in',
    {},
    { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
  ),
  rule(
    'resolvable',
    'an import that does not resolve hides from every rule above',
    {},
    { couldNotResolve: true },
  ),
  rule(
    'no-development-dependency',
    'what is published installs its dependencies only',
    // The build of the page holds what it imports.
    { path: '^src/', pathNot: '^src/console/' },
    {
      dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
      // An optional peer is a development dependency here, and the user's own there.
      dependencyTypesNot: ['npm-peer'],
      pathNot: 'node_modules/@types/',
    },
  ),
];

/** @type {import('dependency-cruiser').ICruiseOptions} */
export const options = {
  // The default parser needs the compiler API that TypeScript 7 no longer has: it would see nothing and pass.
  parser: 'swc',
  tsPreCompilationDeps: true,
  // A package that is linked in is still a package of node_modules.
  preserveSymlinks: true,
  doNotFollow: { path: ['node_modules'] },
  // `scripts/rooms.mjs` asks esbuild what the page imports: this parser does not read JSX.
  exclude: { path: ['^src/.*\\.d\\.ts$', '\\.tsx$'] },
  enhancedResolveOptions: {
    exportsFields: ['exports'],
    conditionNames: ['import', 'types', 'node', 'default'],
    extensions: ['.ts', '.js', '.mjs', '.json'],
  },
};

export default { forbidden, options };
