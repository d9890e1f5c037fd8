"""Settings files of agent hosts, and the hooks that tailhook writes into them."""
