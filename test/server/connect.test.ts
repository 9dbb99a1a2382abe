import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { NativeConnection } from '@temporalio/worker';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { isAlive } from '../../src/server/file-lock.ts';
import { connect, resolveServer, startServer } from '../../src/server/index.ts';
import { refusal } from './support/refusal.ts';
import { scratch } from './support/scripts.ts';

/** A port that nothing listens on: it is reserved, and we are not its service. */
const NOBODY = '127.0.0.1:1';

async function configFile(text: string): Promise<{ TEMPORAL_CONFIG_FILE: string }> {
  const file = join(await scratch(), 'temporal.toml');
  await writeFile(file, text);
  return { TEMPORAL_CONFIG_FILE: file };
}

/** An environment in which nothing is configured, and binaries are found as in ours. */
async function bareEnv(): Promise<Record<string, string | undefined>> {
  const { PATH, HOME, XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  return {
    PATH,
    HOME,
    XDG_CACHE_HOME,
    LOCALAPPDATA,
    TEMPORAL_CONFIG_FILE: join(await scratch(), 'none.toml'),
  };
}

describe('which server', () => {
  it('is the explicit one before all others, without the credentials meant for another', async () => {
    const env = { TEMPORAL_ADDRESS: 'cloud:7233', TEMPORAL_API_KEY: 'secret', TEMPORAL_NAMESPACE: 'prod' };
    expect(await resolveServer({ address: 'here:7233', env })).toEqual({
      connectionOptions: { address: 'here:7233' },
      namespace: 'default',
      source: 'option',
      sourceName: 'the address option',
      server: null,
    });
    const keyed = await resolveServer({ address: 'here:7233', apiKey: 'mine', env });
    expect(keyed.connectionOptions).toEqual({ address: 'here:7233', apiKey: 'mine', tls: true });
  });

  it('is that of TEMPORAL_ADDRESS before that of the config file', async () => {
    const file = await configFile('[profile.default]\naddress = "file:7233"\nnamespace = "from-file"\n');
    const resolved = await resolveServer({ env: { ...file, TEMPORAL_ADDRESS: 'env:7233' } });
    expect(resolved).toMatchObject({
      connectionOptions: { address: 'env:7233' },
      namespace: 'from-file',
      source: 'env',
      sourceName: 'TEMPORAL_ADDRESS',
    });
    const named = await resolveServer({ namespace: 'mine', env: { ...file, TEMPORAL_NAMESPACE: 'env' } });
    expect(named).toMatchObject({ connectionOptions: { address: 'file:7233' }, namespace: 'mine' });
  });

  it('is that of a profile, with its TLS, key and headers', async () => {
    const env = await configFile(
      '[profile.prod]\naddress = "cloud:7233"\nnamespace = "n"\napi_key = "k"\n' +
        '[profile.prod.tls]\nserver_name = "s"\n[profile.prod.grpc_meta]\nTeam = "a"\n',
    );
    const resolved = await resolveServer({ env, profile: 'prod' });
    expect(resolved).toMatchObject({ namespace: 'n', source: 'config-file' });
    expect(resolved.sourceName).toContain('profile prod');
    expect(resolved.connectionOptions).toMatchObject({
      address: 'cloud:7233',
      apiKey: 'k',
      tls: { serverNameOverride: 's' },
      metadata: { team: 'a' },
    });
  });

  it('refuses a config that cannot be used, naming the file', async () => {
    const env = await configFile('[profile.default\n');
    const error = await refusal(resolveServer({ env }));
    expect(error.code).toBe('INVALID_ARGUMENT');
    expect(error.message).toContain(env.TEMPORAL_CONFIG_FILE);
    const unknown = await refusal(resolveServer({ env: await configFile(''), profile: 'prod' }));
    expect(unknown.code).toBe('INVALID_ARGUMENT');
    expect(unknown.message).toContain('prod');
  });

  it('is the dev server that runs in the directory, else the default address', async () => {
    const [dir, env] = [await scratch(), await bareEnv()];
    expect(await resolveServer({ dir, env })).toMatchObject({
      connectionOptions: { address: 'localhost:7233' },
      namespace: 'default',
      source: 'default',
      server: null,
    });
    const server = await startServer({ dir });
    onTestFinished(() => server.stop());
    expect(await resolveServer({ dir, env })).toMatchObject({
      connectionOptions: { address: server.address },
      source: 'embedded',
      server: { owned: false },
    });
  });

  it('is a new dev server when that is allowed; closing ends it', async () => {
    const env = { ...(await bareEnv()), TEMPORAL_NAMESPACE: 'agents' };
    const connected = await connect({ dir: await scratch(), env, embedded: { ui: true } });
    expect(connected).toMatchObject({ source: 'embedded', namespace: 'agents', server: { owned: true } });
    expect(connected.server?.uiUrl).toMatch(/^http/);
    const { namespaceInfo } = await connected.connection.workflowService.describeNamespace({
      namespace: 'agents',
    });
    expect(namespaceInfo?.name).toBe('agents');
    await connected.close();
    expect(isAlive(connected.server?.pid ?? 0)).toBe(false);
  });
});

describe('connecting', () => {
  it('reaches the server of TEMPORAL_ADDRESS, for clients and for workers', async () => {
    const { address, namespace } = inject('temporal');
    const { connection, connectionOptions, close } = await connect({ env: { TEMPORAL_ADDRESS: address } });
    const info = await connection.workflowService.getClusterInfo({});
    expect(info.serverVersion).toMatch(/^1\./);
    const native = await NativeConnection.connect(connectionOptions);
    const described = await native.workflowService.describeNamespace({ namespace });
    expect(described.namespaceInfo?.name).toBe(namespace);
    await native.close();
    await close();
  });

  it('says which server is not there, where it came from, and what to type', async () => {
    const file = await configFile(`[profile.default]\naddress = "${NOBODY}"\n`);
    const ways = [
      [{ address: NOBODY }, 'the address option'],
      [{ env: { TEMPORAL_ADDRESS: NOBODY } }, 'TEMPORAL_ADDRESS'],
      [{ env: file }, 'profile default of the Temporal config file'],
    ] as const;
    await Promise.all(
      ways.map(async ([options, source]) => {
        const error = await refusal(connect(options));
        expect(error.code).toBe('SERVER_UNAVAILABLE');
        expect(error.message).toMatch(new RegExp(`at ${NOBODY} \\(from ${source}\\).*perdure dev`));
        expect(error.details).toMatchObject({ address: NOBODY, namespace: 'default' });
      }),
    );
  });

  it('says that the server is there and the namespace is not', async () => {
    const { address } = inject('temporal');
    const error = await refusal(connect({ address, namespace: 'nowhere' }));
    expect(error.code).toBe('SERVER_UNAVAILABLE');
    expect(error.message).toMatch(/namespace nowhere .*not found/i);
  });
});
