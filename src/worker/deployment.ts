/** Worker deployment versions: which build of the workflow code a worker runs. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { VersioningBehavior } from '@temporalio/common';
import type { WorkerOptions } from '@temporalio/worker';
import perdure from 'perdure/package.json' with { type: 'json' };
import { invalid, PerdureError } from '../contract/errors.ts';

/** The version of a worker, for Temporal's worker deployment versioning. */
export interface DeploymentOptions {
  /** The name that all versions of these workers share. It must not contain `.` or `:`. */
  name: string;
  /**
   * Names this version. Default: the version of this package and the digest of the workflow bundle, so that workers
   * with the same workflow code have the same version. Required with `workflowsPath`.
   */
  buildId?: string;
  /**
   * `AUTO_UPGRADE`: sessions move to the current version with their next workflow task. `PINNED`: they stay on their
   * version until somebody moves them. This applies to all workflows of the worker. Default: `AUTO_UPGRADE`.
   */
  behavior?: VersioningBehavior;
}

/** The workflow bundle of a worker, if it is known before the worker starts. */
type Workflows = WorkerOptions['workflowBundle'];

/**
 * The version options of a worker.
 *
 * @throws PerdureError `INVALID_DEFINITION` when there is no build id, or when both kinds of options are given;
 * `INVALID_ARGUMENT` for a name that the server refuses
 */
export async function versionOptions(
  { name, buildId, behavior = 'AUTO_UPGRADE' }: DeploymentOptions,
  options: WorkerOptions,
  workflows: Workflows,
): Promise<Pick<WorkerOptions, 'workerDeploymentOptions'>> {
  if (options.workerDeploymentOptions !== undefined) {
    throw definition('deployment', 'leave out deployment or workerDeploymentOptions: both name the version');
  }
  if (name === '' || /[.:]/.test(name)) {
    throw invalid('deployment.name', 'must not be empty and must not contain a dot or a colon');
  }
  if (buildId === '') throw invalid('deployment.buildId', 'must not be empty');
  if (buildId === undefined && workflows === undefined) {
    throw definition(
      'deployment.buildId',
      'is missing. With workflowsPath, interceptors or converters the workflows are bundled later: name the version yourself',
    );
  }
  const version = {
    deploymentName: name,
    buildId: buildId ?? `${perdure.version}-${await bundleDigest(workflows)}`,
  };
  return {
    workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior: behavior },
  };
}

/** A digest of a workflow bundle. It is short, because half of the events carry it; the SDK's own has 91 characters. */
export async function bundleDigest(bundle: Workflows): Promise<string> {
  const code = bundle === undefined ? '' : 'code' in bundle ? bundle.code : await readFile(bundle.codePath);
  return createHash('sha256').update(code).digest('hex').slice(0, 8);
}

function definition(field: string, problem: string): PerdureError {
  return new PerdureError('INVALID_DEFINITION', `${field}: ${problem}`, { details: { field } });
}
