#!/usr/bin/env node
import { Cli } from './cli.ts';
import { runProgram } from './program.ts';

const cli = new Cli();
await cli.exit(await runProgram(cli, process.argv));
