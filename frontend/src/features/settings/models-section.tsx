import { Trans } from "@lingui/react/macro";

/** Providers of this tenant, servers on this machine, and presets. */
export function ModelsSection() {
  return (
    <p>
      <Trans>Models come from providers.</Trans>
    </p>
  );
}
