"""What people give: traces, fleet files, models; read whole or refused with every fault named."""
