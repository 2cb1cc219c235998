/** Each primitive of `shared/ui` as it is used, for the page `/stories` and its tests. */

import { type ReactNode, useState } from "react";
import { ProblemError } from "@/shared/api/client";
import { Badge, Tag } from "@/shared/ui/badge";
import { Button, IconButton } from "@/shared/ui/button";
import { Combobox } from "@/shared/ui/combobox";
import { Dialog } from "@/shared/ui/dialog";
import { EmptyState } from "@/shared/ui/empty-state";
import { Checkbox, Field, Input, Select } from "@/shared/ui/field";
import { type Loadable, Loaded } from "@/shared/ui/loaded";
import { Menu } from "@/shared/ui/menu";
import { Panel } from "@/shared/ui/panel";
import { Popover } from "@/shared/ui/popover";
import { ProblemNote } from "@/shared/ui/problem-note";
import { Table } from "@/shared/ui/table";
import { type TabItem, Tabs } from "@/shared/ui/tabs";
import { ToastProvider, useToast } from "@/shared/ui/toast";
import { Tooltip } from "@/shared/ui/tooltip";

export interface Story {
  name: string;
  render(): ReactNode;
}

const NOTHING = () => undefined;

function LimitField({ error = "" }: { error?: string }) {
  const [value, setValue] = useState(error ? "much" : "2.50");
  return (
    <Field label="Daily spending limit, $" description="Empty means no limit." error={error}>
      {(control) => <Input {...control} value={value} onChange={(event) => setValue(event.target.value)} />}
    </Field>
  );
}

function OptInBox() {
  const [isOn, setOn] = useState(true);
  return (
    <Checkbox
      label="Use my runs for training"
      description="No data leaves this installation."
      checked={isOn}
      onChange={setOn}
    />
  );
}

type View = "timeline" | "sources" | "report";

function RunViews() {
  const [selected, setSelected] = useState<View>("sources");
  const tabs: TabItem<View>[] = [
    { key: "timeline", label: "Timeline" },
    { key: "sources", label: "Sources 64" },
    { key: "report", label: "Report" },
  ];
  return (
    <Tabs label="Views of a run" tabs={tabs} selected={selected} onSelect={setSelected}>
      <p style={{ paddingBlock: 16 }}>The panel of {selected}.</p>
    </Tabs>
  );
}

function ToastButton() {
  const toast = useToast();
  return (
    <Button onClick={() => toast({ text: "The question in the form was replaced.", undo: NOTHING })}>
      Replace the question
    </Button>
  );
}

function DialogButton() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Cancel the run</Button>
      <Dialog open={isOpen} onClose={() => setOpen(false)} title="Cancel this run?">
        <p>The run ends now without a report. Its steps are kept.</p>
        <Menu label="More" items={[{ name: "Finish early", onAction: NOTHING }]} />
        <div className="actions">
          <Button onClick={() => setOpen(false)}>Keep running</Button>
          <Button kind="danger" onClick={() => setOpen(false)}>
            Cancel without a report
          </Button>
        </div>
      </Dialog>
    </>
  );
}

function EngineField() {
  const [engine, setEngine] = useState("");
  return (
    <Combobox
      label="Engine"
      description="Other names can be entered too."
      placeholder="default of this installation"
      options={["extractive", "litellm:openai/gpt-5", "policy:planner@7"]}
      value={engine}
      onChange={setEngine}
    />
  );
}

interface StoredRun {
  id: string;
  question: string;
  turns: number;
}

const RUNS: readonly StoredRun[] = [
  { id: "1", question: "How does undici reuse connections?", turns: 12 },
  { id: "2", question: "Who built the third Eddystone tower?", turns: 5 },
];

const PENDING: Loadable<string[]> = {
  data: undefined,
  error: null,
  fetchStatus: "fetching",
  refetch: NOTHING,
};
const FAILURE = new ProblemError(
  422,
  "The run was not created",
  "The budget must be above zero.",
  "max_turns",
  "Enter at least one turn.",
);

export const STORIES: readonly Story[] = [
  {
    name: "Button",
    render: () => (
      <>
        <Button kind="primary">Ask</Button>
        <Button>Pause</Button>
        <Button kind="danger">Cancel</Button>
        <Button kind="plain">Settings</Button>
        <Button small>Try again</Button>
        <Button disabled>Asking…</Button>
      </>
    ),
  },
  { name: "IconButton", render: () => <IconButton label="Close the panel">×</IconButton> },
  { name: "Field", render: () => <LimitField /> },
  {
    name: "Field with an error",
    render: () => <LimitField error="Enter the limit as a number of dollars, such as 2.50." />,
  },
  {
    name: "Select",
    render: () => (
      <Field label="Graph">
        {(control) => (
          <Select {...control} defaultValue="agentflow">
            <option value="agentflow">AgentFlow</option>
            <option value="iterresearch">IterResearch</option>
          </Select>
        )}
      </Field>
    ),
  },
  { name: "Checkbox", render: () => <OptInBox /> },
  {
    name: "Panel",
    render: () => (
      <Panel title="Evidence" actions={<Button small>Copy</Button>}>
        <p>“A client keeps one connection open until it is closed.”</p>
      </Panel>
    ),
  },
  {
    name: "Card",
    render: () => (
      <Panel card level={3} title="planner@7">
        <p>Reward 0.62 after 140 training steps.</p>
      </Panel>
    ),
  },
  {
    name: "Table",
    render: () => (
      <Table
        caption="Runs"
        columns={[
          { header: "Question", cell: ({ question }) => question },
          { header: "Turns", isNumber: true, cell: ({ turns }) => turns },
        ]}
        rows={RUNS}
        rowKey={({ id }) => id}
      />
    ),
  },
  {
    name: "EmptyState",
    render: () => (
      <EmptyState title="No documents yet" action={<Button kind="primary">Add a folder</Button>}>
        Add a folder of PDF, HTML, Markdown, plain text or Word files. Runs read them and cite their passages.
      </EmptyState>
    ),
  },
  {
    name: "Badge",
    render: () => (
      <>
        <Badge>Queued</Badge>
        <Badge tone="sea">Working</Badge>
        <Badge tone="moss">Done</Badge>
        <Badge tone="sun">Partial answer</Badge>
        <Badge tone="coral">Failed</Badge>
        <Tag>p. 6</Tag>
      </>
    ),
  },
  {
    name: "Toast",
    render: () => (
      <ToastProvider>
        <ToastButton />
      </ToastProvider>
    ),
  },
  { name: "Tabs", render: () => <RunViews /> },
  {
    name: "Menu",
    render: () => (
      <Menu
        label="Export"
        items={[
          { name: "Markdown", description: "to read and edit", href: "#export", isDownload: true },
          { name: "JSON", description: "with all quotes and source spans", onAction: NOTHING },
        ]}
      />
    ),
  },
  {
    name: "Popover",
    render: () => <Popover label="Budget">{(close) => <Button onClick={close}>Keep the budget</Button>}</Popover>,
  },
  { name: "Combobox", render: () => <EngineField /> },
  {
    name: "Tooltip",
    render: () => (
      <Tooltip text="Stop collecting evidence and write the report">
        <Button>Finish early</Button>
      </Tooltip>
    ),
  },
  { name: "Dialog", render: () => <DialogButton /> },
  {
    name: "Loaded, pending",
    render: () => (
      <Loaded query={PENDING} label="the runs">
        {() => null}
      </Loaded>
    ),
  },
  {
    name: "Loaded, failed",
    render: () => (
      <Loaded query={{ ...PENDING, error: FAILURE, fetchStatus: "idle" }} label="the runs">
        {() => null}
      </Loaded>
    ),
  },
  {
    name: "Error of a view",
    render: () => (
      <ProblemNote error={new TypeError("marks.map is not a function")} onRetry={NOTHING} details="at RunPage" />
    ),
  },
];
