/**
 * The shops that the desk works for, as a service of its own: each tenant has orders, refunds and mails.
 *
 *     tsx examples/support-desk/shop.ts --store FILE [--port 0]
 *
 *     GET  /:tenant/orders/:id                → the order, or 404
 *     POST /:tenant/orders/:id                {status} → the order, with this status
 *     POST /:tenant/{refunds,mails}           (header Idempotency-Key) → 201 {id}
 *     GET  /:tenant/{refunds,mails}[?key=…]   → the rows, or those of a key
 *
 * It ignores repeated keys: a second POST is a second mail. When it is ready it prints a JSON line
 * `{ url, port, pid }`.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/** A line of the store. An order's last line is its present state. */
interface Row {
  tenant: string;
  kind: string;
  id: string;
  key?: string;
  body: object;
}

const { values } = parseArgs({
  options: { store: { type: 'string' }, port: { type: 'string', default: '0' } },
});
const { store } = values;
if (store === undefined) throw new Error('--store <file> is missing');

const rows: Row[] = existsSync(store)
  ? readFileSync(store, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Row)
  : [];

function write(row: Row): void {
  appendFileSync(store as string, `${JSON.stringify(row)}\n`);
  rows.push(row);
}

if (rows.length === 0) {
  const order = { customer: 'ann@example.com', item: 'Desk lamp', cents: 12_900, status: 'packed' };
  write({ tenant: 'lamps', kind: 'orders', id: '1001', body: order });
  write({ tenant: 'lamps', kind: 'orders', id: '1002', body: { ...order, customer: 'carl@example.com' } });
  write({ tenant: 'books', kind: 'orders', id: '2001', body: { ...order, customer: 'bob@example.com' } });
}

const app = new Hono();
const orderOf = (tenant: string, id: string): Row | undefined =>
  rows.findLast((row) => row.tenant === tenant && row.kind === 'orders' && row.id === id);

app.get('/:tenant/orders/:id', (c) => {
  const order = orderOf(c.req.param('tenant'), c.req.param('id'));
  return order === undefined ? c.json({ error: 'there is no such order' }, 404) : c.json(order.body);
});
app.post('/:tenant/orders/:id', async (c) => {
  const order = orderOf(c.req.param('tenant'), c.req.param('id'));
  if (order === undefined) return c.json({ error: 'there is no such order' }, 404);
  const body = { ...order.body, ...(await c.req.json<object>()) };
  write({ ...order, body });
  return c.json(body);
});
app.post('/:tenant/:kind{refunds|mails}', async (c) => {
  const { tenant, kind } = c.req.param();
  const id = `${kind}-${rows.length}`;
  write({ tenant, kind, id, key: c.req.header('Idempotency-Key') ?? '', body: await c.req.json<object>() });
  return c.json({ id }, 201);
});
app.get('/:tenant/:kind{refunds|mails}', (c) => {
  const { tenant, kind } = c.req.param();
  const key = c.req.query('key');
  const found = rows.filter(
    (row) => row.tenant === tenant && row.kind === kind && (key === undefined || row.key === key),
  );
  return c.json(found.map(({ id, body }) => ({ id, ...body })));
});

serve({ fetch: app.fetch, port: Number(values.port), hostname: '127.0.0.1' }, ({ port }) =>
  console.log(JSON.stringify({ url: `http://127.0.0.1:${port}`, port, pid: process.pid })),
);
