import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NativeConnection, Worker } from '@temporalio/worker';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { DEV_SERVER_DYNAMIC_CONFIG } from '../../src/server/index.ts';

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

const service = z.strictObject({
  image: z.string(),
  build: z.literal('.').optional(),
  pull_policy: z.literal('never').optional(),
  command: z.array(z.string()).optional(),
  init: z.boolean().optional(),
  depends_on: z
    .record(
      z.string(),
      z.strictObject({ condition: z.enum(['service_healthy', 'service_completed_successfully']) }),
    )
    .optional(),
  entrypoint: z.array(z.string()).optional(),
  user: z.string().optional(),
  environment: z.record(z.string(), z.string()),
  volumes: z.array(z.string()).optional(),
  ports: z.array(z.string()).optional(),
  healthcheck: z.union([
    z.strictObject({ disable: z.literal(true) }),
    z.strictObject({
      test: z.tuple([z.literal('CMD')], z.string()),
      interval: z.string(),
      timeout: z.string(),
      retries: z.number(),
      start_period: z.string(),
    }),
  ]),
  stop_grace_period: z.string().optional(),
  restart: z.string(),
});

// Strict: a misspelt key is refused here, as `docker compose config` would refuse it.
const compose = z
  .strictObject({ services: z.record(z.string(), service), volumes: z.record(z.string(), z.null()) })
  .parse(parse(readFileSync(root('docker-compose.yml'), 'utf8')));
const services = Object.entries(compose.services);

const settings = z
  .record(z.string(), z.tuple([z.strictObject({ value: z.union([z.string(), z.number(), z.boolean()]) })]))
  .parse(parse(readFileSync(root('deploy/dynamic-config.yaml'), 'utf8')));

describe('docker-compose.yml', () => {
  it('has a database, a server, its UI and a worker', () => {
    expect(services.map(([name]) => name)).toEqual([
      'postgres',
      'temporal',
      'ui',
      'setup',
      'model',
      'payments',
      'worker',
    ]);
  });

  it('pins every image to a full version', () => {
    for (const [name, { image }] of services) expect(image, name).toMatch(/:\d+\.\d+(\.\d+)?(-[\w.]+)?$/);
    const bases = readFileSync(root('Dockerfile'), 'utf8').match(/(?<=^FROM )\S+/gm) ?? [];
    expect(bases.length).toBeGreaterThan(0);
    for (const base of bases) expect(base).toMatch(/^node:22\.\d+\.\d+-.*slim$/);
  });

  it('builds each image once: two builds of one tag at the same time fail', () => {
    const built = services.flatMap(([, { build, image }]) => (build === undefined ? [] : [image]));
    expect(built).toEqual(['perdure-worker:0.1.0']);
    // What is built here is in no registry.
    for (const [name, { build, image, pull_policy: pull }] of services)
      expect(pull, name).toBe(build === undefined && built.includes(image) ? 'never' : undefined);
  });

  it('checks the health of every service that stays, and restarts it', () => {
    for (const [name, { healthcheck, restart }] of services) {
      const stays = name !== 'setup';
      expect('test' in healthcheck, name).toBe(stays);
      expect(restart, name).toBe(stays ? 'unless-stopped' : 'on-failure:5');
    }
  });

  it('starts each service after what it needs', () => {
    const order = Object.fromEntries(
      services.map(([name, { depends_on: needs = {} }]) => [
        name,
        Object.fromEntries(Object.entries(needs).map(([needed, { condition }]) => [needed, condition])),
      ]),
    );
    expect(order).toEqual({
      postgres: {},
      temporal: { postgres: 'service_healthy' },
      ui: { temporal: 'service_healthy' },
      setup: { temporal: 'service_healthy' },
      model: {},
      payments: {},
      worker: {
        temporal: 'service_healthy',
        setup: 'service_completed_successfully',
        model: 'service_healthy',
        payments: 'service_healthy',
      },
    });
  });

  it('opens ports to this machine only', () => {
    const ports = services.flatMap(([, { ports: opened = [] }]) => opened);
    expect(ports.length).toBeGreaterThan(0);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  });

  it('mounts what exists, and names volumes that are declared', () => {
    const mounts = services
      .flatMap(([, { volumes = [] }]) => volumes)
      .map((mount) => mount.split(':')[0] ?? '');
    expect(mounts.length).toBeGreaterThan(0);
    for (const mount of mounts) {
      if (mount.startsWith('.')) expect(existsSync(root(mount)), mount).toBe(true);
      else expect(Object.keys(compose.volumes)).toContain(mount);
    }
  });

  it('gives the server the tuning that the dev server has', () => {
    const temporal = compose.services['temporal'];
    const file = temporal?.environment['DYNAMIC_CONFIG_FILE_PATH'];
    expect(temporal?.volumes).toContain(`./deploy/dynamic-config.yaml:${file}:ro`);
    const values = Object.fromEntries(Object.entries(settings).map(([key, [{ value }]]) => [key, value]));
    expect(values).toEqual(DEV_SERVER_DYNAMIC_CONFIG);
  });

  it('has the image of the worker contain what its commands name', () => {
    const dockerfile = readFileSync(root('Dockerfile'), 'utf8');
    expect(compose.services['worker']?.healthcheck).toMatchObject({
      test: ['CMD', 'node', 'deploy/worker-health.mjs'],
    });
    for (const path of ['dist', 'examples', 'deploy'])
      expect(dockerfile).toContain(`/app/${path} ./${path}\n`);
    expect(dockerfile).toContain('ENTRYPOINT ["node", "dist/cli/main.js"]');
  });
});

describe('the health check of the worker', () => {
  const check = (taskQueue: string): { status: number | null; stderr: string } =>
    spawnSync(process.execPath, [root('deploy/worker-health.mjs')], {
      cwd: root('.'),
      encoding: 'utf8',
      env: { ...process.env, TEMPORAL_ADDRESS: inject('temporal').address, PERDURE_TASK_QUEUE: taskQueue },
    });

  it('passes while a worker of this host polls, and says why otherwise', async () => {
    const { address, namespace } = inject('temporal');
    const taskQueue = 'worker-health';
    expect(check(taskQueue)).toMatchObject({ status: 1 });
    expect(check(taskQueue).stderr).toMatch(/^no worker of \S+ polls task queue worker-health\n$/);

    const connection = await NativeConnection.connect({ address });
    onTestFinished(() => connection.close());
    const worker = await Worker.create({
      connection,
      namespace,
      taskQueue,
      activities: { nothing: () => Promise.resolve() },
    });
    await worker.runUntil(
      vi.waitFor(() => expect(check(taskQueue)).toMatchObject({ status: 0, stderr: '' }), 20_000),
    );
  });

  it('fails when the server is not there', () => {
    const { status, stderr } = spawnSync(process.execPath, [root('deploy/worker-health.mjs')], {
      cwd: root('.'),
      encoding: 'utf8',
      env: { ...process.env, TEMPORAL_ADDRESS: '127.0.0.1:1' },
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/connect/i);
  });
});
