"""The web inbox: pages drawn on the server, forms that work without JavaScript, and modules that add what is live."""
