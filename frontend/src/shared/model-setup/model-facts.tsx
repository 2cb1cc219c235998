import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ProviderModel } from "../api/providers";
import { joinParts } from "../format/lists";
import { formatCompact, formatUsd } from "../format/numbers";

/** What is known about a model: prices, context window and what it can do. Unknown values say so. */
export function ModelFacts({ model, isOwnServer }: { model: ProviderModel; isOwnServer: boolean }) {
  const { context_tokens: context, input_usd_per_million: input, output_usd_per_million: output } = model;
  const window = context === null ? t`context unknown` : t`${formatCompact(context)} tokens of context`;
  const price =
    input === null || output === null
      ? isOwnServer
        ? ""
        : t`price unknown`
      : t`${formatUsd(input)} in, ${formatUsd(output)} out per million tokens`;
  return (
    <span className="quiet num">
      {joinParts([price, window, ...listAbilities(model)].filter((part) => part !== ""))}
    </span>
  );
}

/** Return what a model is known to do. What is unknown or not possible is left out. */
export function listAbilities(model: ProviderModel): string[] {
  return [
    model.calls_tools ? t`tools` : "",
    model.follows_schema ? t`JSON schema` : "",
    model.reads_images ? t`images` : "",
    model.reasons ? t`reasoning` : "",
  ].filter((ability) => ability !== "");
}

export function UnknownFacts() {
  return (
    <span className="quiet">
      <Trans>not in the list; nothing is known about it</Trans>
    </span>
  );
}
