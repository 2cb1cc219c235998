import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { addMcpServer, type McpListing, type McpServerRequest, previewMcpServer } from "@/shared/api/settings";
import { Button } from "@/shared/ui/button";
import { Checkbox, Field, Input } from "@/shared/ui/field";
import { Panel } from "@/shared/ui/panel";
import { ProblemNote } from "@/shared/ui/problem-note";
import styles from "./installation.module.css";

interface Form {
  name: string;
  url: string;
  bearer: string;
}

// Not translated: examples of a name, an address and a variable.
const EXAMPLE: Form = { name: "wiki", url: "https://mcp.wiki.example/mcp", bearer: "MCP_WIKI_TOKEN" };

const EMPTY: Form = { name: "", url: "", bearer: "" };

function buildRequest(form: Form, tools: readonly string[]): McpServerRequest {
  return { url: form.url.trim(), bearer: form.bearer.trim() || null, tools: [...tools] };
}

/** Adds a public server in two steps: look at its tools, then add and pin exactly those. */
export function AddServer() {
  const [form, setForm] = useState(EMPTY);
  const preview = useMutation({ mutationFn: () => previewMcpServer(form.name.trim(), buildRequest(form, [])) });
  const change = (part: Partial<Form>) => {
    setForm({ ...form, ...part });
    preview.reset();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (form.name.trim() && form.url.trim()) preview.mutate();
  };
  const finish = () => {
    setForm(EMPTY);
    preview.reset();
  };
  return (
    <Panel title={t`Add a server`} level={3}>
      <form className={styles.form} onSubmit={submit}>
        <Field label={t`Name`} description={t`Lower-case letters and digits`}>
          {(control) => (
            <Input
              {...control}
              value={form.name}
              placeholder={EXAMPLE.name}
              onChange={(e) => change({ name: e.target.value })}
            />
          )}
        </Field>
        <Field
          label={t`Address`}
          description={t`A public server over HTTPS. For a server on this machine, use offing mcp add --private.`}
        >
          {(control) => (
            <Input
              {...control}
              dir="ltr"
              value={form.url}
              placeholder={EXAMPLE.url}
              onChange={(event) => change({ url: event.target.value })}
            />
          )}
        </Field>
        <Field
          label={t`Variable with the bearer token`}
          description={t`Name of an environment variable of the API and the workers that begins with MCP_. Leave it empty for none.`}
        >
          {(control) => (
            <Input
              {...control}
              dir="ltr"
              value={form.bearer}
              placeholder={EXAMPLE.bearer}
              onChange={(event) => change({ bearer: event.target.value })}
            />
          )}
        </Field>
        <div className={styles.actions}>
          <Button type="submit" disabled={!form.name.trim() || !form.url.trim() || preview.isPending}>
            {preview.isPending ? t`Asking the server…` : t`Show its tools`}
          </Button>
        </div>
      </form>
      <ProblemNote error={preview.error} />
      {preview.data?.problem && (
        <p className={styles.problem} role="alert" dir="auto">
          {preview.data.problem}
        </p>
      )}
      {preview.data && !preview.data.problem && (
        <ReviewTools key={preview.data.sha256} form={form} listing={preview.data} onAdded={finish} />
      )}
    </Panel>
  );
}

function ReviewTools({ form, listing, onAdded }: { form: Form; listing: McpListing; onAdded(): void }) {
  const client = useQueryClient();
  const [tools, setTools] = useState<readonly string[]>([]);
  const add = useMutation({
    mutationFn: () => addMcpServer(form.name.trim(), buildRequest(form, tools), listing.sha256),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["installation"] });
      await client.invalidateQueries({ queryKey: ["mcp-servers"] });
      onAdded();
    },
  });
  return (
    <div className={styles.stack}>
      <p>
        <Trans>Select the tools that runs may use. Models see these texts of the server, so read them.</Trans>
      </p>
      {listing.tools.map(({ name, description, arguments: names }) => (
        <Checkbox
          key={name}
          label={
            <span className={styles.code} dir="auto">
              {name}({names.join(", ")})
            </span>
          }
          description={<span dir="auto">{description}</span>}
          checked={tools.includes(name)}
          onChange={(checked) => setTools(checked ? [...tools, name] : tools.filter((one) => one !== name))}
        />
      ))}
      <ProblemNote error={add.error} />
      <div className={styles.actions}>
        <Button kind="primary" disabled={tools.length === 0 || add.isPending} onClick={() => add.mutate()}>
          {add.isPending ? t`Adding…` : t`Add and pin`}
        </Button>
      </div>
    </div>
  );
}
