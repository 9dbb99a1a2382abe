// Temporal's `Duration` is built on a type of `ms`, whose package does not show its types to ES modules: without
// this, `Duration` would be `any` and a mistyped time-out would compile.
declare module 'ms' {
  type Unit =
    | 'ms'
    | 's'
    | 'm'
    | 'h'
    | 'd'
    | 'second'
    | 'seconds'
    | 'minute'
    | 'minutes'
    | 'hour'
    | 'hours'
    | 'day'
    | 'days';
  export type StringValue = `${number}` | `${number}${Unit}` | `${number} ${Unit}`;
}
