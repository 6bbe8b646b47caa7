"""Whether NFs fit the stages of the switch: by blocks, by their tables, or by a vendor's compiler."""
