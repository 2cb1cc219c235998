import { Field, Input } from "./field";
import { useOverlays } from "./use-overlays";

export interface ComboboxProps {
  label: string;
  /** Suggestions. Other values can be entered too. */
  options: readonly string[];
  value: string;
  onChange(value: string): void;
  description?: string;
  placeholder?: string;
}

/** A text field with suggestions that match what was typed. It is a plain field until, or unless, its code is loaded. */
export function Combobox(props: ComboboxProps) {
  const { overlays } = useOverlays(true);
  if (overlays) return <overlays.ComboboxField {...props} />;
  const { label, description, value, placeholder, onChange } = props;
  return (
    <Field label={label} description={description}>
      {(control) => (
        <Input
          {...control}
          value={value}
          placeholder={placeholder}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}
